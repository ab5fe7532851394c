package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"taskbridge/mcpbridge/draft"
)

// draftOptions say what to draft from, and where to.
type draftOptions struct {
	draft.Options
	workflowID, runID string
	output            string // a file that does not exist; "" for standard output
}

func newCatalogDraftCommand(s settings, io streams) *cobra.Command {
	var o draftOptions
	cmd := &cobra.Command{
		Use:   "draft --workflow-id ID",
		Short: "Write the first version of a catalog entry from a past execution of a workflow",
		Long: "draft looks at the history of a workflow that somebody has run, and writes a catalog with a tool that starts\n" +
			"it: workflow type, task queue, timeouts, retries, and a schema of the arguments. Comments say what a single\n" +
			"execution cannot tell, and suggest questions for the signals and updates that it got. Values stay out of it, except\n" +
			"with --examples.",
		Example: "  TEMPORAL_ADDRESS=127.0.0.1:7233 taskbridge catalog draft --workflow-id order-1815 -o orders.yaml",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.workflowID == "" {
				return usageErrorf("draft needs the execution to look at: name it with --workflow-id")
			}
			return draftCatalog(cmd.Context(), s, io, o)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.workflowID, "workflow-id", "", "workflow ID of the execution")
	flags.StringVar(&o.runID, "run-id", "", "run ID of the execution; by default the last run")
	flags.StringVar(&o.Name, "name", "", "name of the tool; by default the workflow type in snake case")
	flags.StringVar(&o.Namespace, "namespace", "", "namespace of the execution; by default that of the connection")
	flags.BoolVar(&o.Examples, "examples", false, "show values of the execution in comments; they may be secret")
	flags.StringVarP(&o.output, "output", "o", "", "new file to write to, instead of standard output")
	return cmd
}

func draftCatalog(ctx context.Context, s settings, io streams, o draftOptions) error {
	var err error
	if o.Loader, err = loader(); err != nil {
		return err
	}
	connector, err := newConnector(s, io)
	if err != nil {
		return err
	}
	if o.Namespace == connector.profile.Namespace {
		o.Namespace = "" // the draft need not name it
	}
	needs := map[string][]string{}
	if o.Namespace != "" {
		needs[o.Namespace] = nil
	}
	temporal, err := connector.connectTo(ctx, needs)
	if err != nil {
		return err
	}
	defer temporal.Close()
	data, err := draft.Write(ctx, temporal.in(o.Namespace), o.workflowID, o.runID, o.Options)
	if err != nil {
		return err
	}
	if o.output != "" {
		return writeNew(o.output, data)
	}
	_, err = io.Out.Write(data)
	return err
}

// writeNew writes a file, and refuses to overwrite one.
func writeNew(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists and stays as it is: choose another file for the draft", path)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	return errors.Join(err, file.Close())
}
