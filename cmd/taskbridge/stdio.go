package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
)

func newStdioCommand(s settings, io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "stdio",
		Short: "Serve the tools of a catalog over stdin and stdout, to a host that starts its servers itself",
		Long: "stdio is the MCP front end for hosts that start a server as a process and talk to it over stdin and stdout, such as\n" +
			"Claude Desktop. It needs a Temporal server and at least one catalog, as serve does, and offers the same. stdout carries\n" +
			"nothing but MCP; logs go to stderr. When the host closes stdin, replies in flight are written and workflows go on\n" +
			"running.",
		Example: "  TEMPORAL_ADDRESS=127.0.0.1:7233 taskbridge stdio --catalog tools.yaml",
		Args:    between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return stdio(cmd.Context(), s, io)
		},
	}
	cmd.Flags().StringSliceVar(&s.Catalog, "catalog", s.Catalog, "tool catalogs: YAML files or directories")
	return cmd
}

func stdio(ctx context.Context, s settings, io streams) error {
	if len(s.Catalog) == 0 {
		return exitError{exitUsage, errors.New("stdio needs a tool catalog: name it with --catalog or TASKBRIDGE_CATALOG")}
	}
	tools, err := loadCatalog(s.Catalog)
	if err != nil {
		return err
	}
	temporal, err := connectAll(ctx, s, io, tools.Tools())
	if err != nil {
		return err
	}
	defer temporal.Close()
	bridge, err := newBridge(s, io, temporal, tools)
	if err != nil {
		return err
	}
	return bridge.ServeStdio(ctx, io.In, io.Out)
}
