package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/workflows"
)

func newCatalogCommand(io streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "catalog",
		Short: "Check tool catalogs",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:     "check FILE|DIR...",
			Short:   "Report every mistake in tool catalogs, with file and line",
			Example: "  taskbridge catalog check tools.yaml",
			Args:    between(1, -1),
			RunE: func(_ *cobra.Command, args []string) error {
				tools, err := loadCatalog(args)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(io.Out, "ok: %d tool(s)\n", len(tools.Tools()))
				return err
			},
		},
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema of tool catalogs, for editors",
			Args:  between(0, 0),
			RunE: func(*cobra.Command, []string) error {
				_, err := io.Out.Write(catalog.Schema())
				return err
			},
		},
	)
	return cmd
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
