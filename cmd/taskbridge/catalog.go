package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/mcpbridge/cluster"
	"taskbridge/workflows"
)

func newCatalogCommand(s settings, io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Check and draft tool catalogs",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCatalogCheckCommand(s, io), newCatalogDraftCommand(s, io), &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of tool catalogs, for editors",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.Out.Write(catalog.Schema())
			return err
		},
	})
	return cmd
}

func newCatalogCheckCommand(s settings, io streams) *cobra.Command {
	live := false
	cmd := &cobra.Command{
		Use:   "check FILE|DIR...",
		Short: "Report every mistake in tool catalogs, with file and line",
		Long: "check reads tool catalogs, by default those of TASKBRIDGE_CATALOG, and reports every mistake with file and\n" +
			"line.\n\n" +
			"With --live it also looks on the Temporal server for what the tools need: namespaces, workers that poll the task\n" +
			"queues, runs of the workflow types, search attributes. It starts and changes nothing.",
		Example: "  taskbridge catalog check tools.yaml\n" +
			"  TEMPORAL_ADDRESS=127.0.0.1:7233 taskbridge catalog check --live tools.yaml",
		RunE: func(cmd *cobra.Command, paths []string) error {
			if len(paths) == 0 {
				paths = s.Catalog
			}
			if len(paths) == 0 {
				return usageErrorf("usage: %s", cmd.UseLine())
			}
			return checkCatalog(cmd.Context(), s, io, paths, live)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "also look for what the tools need on the Temporal server")
	return cmd
}

func checkCatalog(ctx context.Context, s settings, io streams, paths []string, live bool) error {
	loaded, err := loadCatalog(paths)
	if err != nil {
		return err
	}
	tools := loaded.Tools()
	if live {
		if err := checkLive(ctx, s, io, tools); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(io.Out, "ok: %d tool(s)\n", len(tools))
	return err
}

// checkLive prints what the tools need and how it is. It is an error if some of that is missing.
func checkLive(ctx context.Context, s settings, io streams, tools []*catalog.Tool) error {
	connector, err := newConnector(s, io)
	if err != nil {
		return err
	}
	connector.looking = true
	temporal, err := connector.connect(ctx, tools)
	if err != nil {
		return err
	}
	defer temporal.Close()
	findings, err := temporal.cluster().Check(ctx, tools)
	if err != nil {
		return err
	}
	if err := printFindings(io.Out, findings); err != nil {
		return err
	}
	missing := 0
	for _, f := range findings {
		if f.Level == cluster.Error {
			missing++
		}
	}
	if missing > 0 {
		return fmt.Errorf("errors on the Temporal server: %d", missing)
	}
	return nil
}

// printFindings makes a table of them. A tool's name is in the first of its lines.
func printFindings(out io.Writer, findings []cluster.Finding) error {
	columns := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "TOOL\tNEEDS\tSTATE")
	before := ""
	for _, f := range findings {
		name := f.Tool
		if name == before {
			name = ""
		}
		before = f.Tool
		_, _ = fmt.Fprintf(columns, "%s\t%s\t%s\t%s\n", name, f.Subject, f.Level, printable(f.Message, false))
	}
	return columns.Flush()
}

// loader reads catalogs and also checks what this program knows: the pipelines of the bundled workflow.
func loader() (catalog.Loader, error) {
	schema, err := workflows.PipelineSchema()
	if err != nil {
		return catalog.Loader{}, err
	}
	with, err := json.Marshal(schema)
	if err != nil {
		return catalog.Loader{}, err
	}
	return catalog.Loader{Workflows: map[string]catalog.Workflow{
		workflows.PipelineName: {Result: catalog.ResultMCP, With: with, Check: checkPipeline},
	}}, nil
}

func loadCatalog(paths []string) (*catalog.Catalog, error) {
	l, err := loader()
	if err != nil {
		return nil, err
	}
	loaded, err := l.Load(paths...)
	var mistakes catalog.Errors
	if errors.As(err, &mistakes) {
		return nil, fmt.Errorf("mistakes in the catalog: %d\n%w", len(mistakes), err)
	}
	return loaded, err
}

func checkPipeline(with map[string]json.RawMessage) []catalog.Mistake {
	at := []any{"pipeline"}
	var pipeline workflows.PipelineSpec
	if err := json.Unmarshal(with["pipeline"], &pipeline); err != nil {
		return []catalog.Mistake{{Path: at, Message: err.Error()}}
	}
	var mistakes []catalog.Mistake
	for _, problem := range pipeline.Problems() {
		path := at
		if problem.Step >= 0 {
			path = append(path, "steps", problem.Step)
		}
		if problem.Field != "" {
			path = append(path, problem.Field)
		}
		mistakes = append(mistakes, catalog.Mistake{Path: path, Message: problem.Message})
	}
	return mistakes
}
