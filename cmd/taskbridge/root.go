package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"taskbridge/mcpbridge"
)

// newRootCommand is the whole command tree.
func newRootCommand(io streams) (*cobra.Command, error) {
	s, err := loadSettings()
	if err != nil {
		return nil, err
	}
	table, err := describeSettings()
	if err != nil {
		return nil, err
	}
	root := &cobra.Command{
		Use:   "taskbridge",
		Short: "Run MCP tasks on Temporal",
		Long: "taskbridge is an MCP server that runs tool calls as Temporal workflows.\n\n" +
			"Environment:\n" + indent(table) +
			"\nThe connection to Temporal comes from the standard variables and profiles: TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE,\n" +
			"TEMPORAL_API_KEY, TEMPORAL_TLS_*, TEMPORAL_CODEC_ENDPOINT, TEMPORAL_CODEC_AUTH, TEMPORAL_PROFILE,\n" +
			"TEMPORAL_CONFIG_FILE.",
		Version:       mcpbridge.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          knownCommand,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return exitError{exitUsage, fmt.Errorf("%w (see %s --help)", err, cmd.CommandPath())}
	})
	root.AddCommand(
		newDevCommand(s, io),
		newServeCommand(s, io),
		newStdioCommand(s, io),
		newWorkerCommand(s, io),
		newCatalogCommand(s, io),
		newToolsCommand(s.URL, io),
		newCallCommand(s.URL, io),
		newTaskCommand(s.URL, io),
	)
	return root, nil
}

// knownCommand refuses the name of a subcommand that does not exist.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	cmd.SuggestionsMinimumDistance = 2
	hint := fmt.Sprintf("see %s --help", cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		hint = "did you mean " + strings.Join(similar, " or ") + "?"
	}
	return usageErrorf("%s has no command %q; %s", cmd.CommandPath(), args[0], hint)
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}
