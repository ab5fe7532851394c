package main

import (
	"bytes"
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
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:     "check FILE|DIR...",
			Short:   "Report every mistake in tool catalogs, with file and line",
			Example: "  taskbridge catalog check tools.yaml",
			Args:    cobra.MinimumNArgs(1),
			RunE: func(_ *cobra.Command, args []string) error {
				tools, err := loadCatalog(args)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(io.Out, "ok: %d tools\n", len(tools.Tools()))
				return err
			},
		},
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON Schema of tool catalogs, for editors",
			Args:  cobra.NoArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := io.Out.Write(catalog.Schema())
				return err
			},
		},
	)
	return cmd
}

// loadCatalog reads catalogs and also checks what only this program knows: the pipelines of the bundled workflow.
func loadCatalog(paths []string) (*catalog.Catalog, error) {
	loaded, err := catalog.Load(paths...)
	if err != nil {
		return nil, err
	}
	return loaded, checkPipelines(loaded)
}

func checkPipelines(loaded *catalog.Catalog) error {
	var problems []error
	for _, tool := range loaded.Tools() {
		if tool.Workflow != workflows.PipelineName {
			continue
		}
		if err := checkPipeline(tool.With["pipeline"]); err != nil {
			problems = append(problems, fmt.Errorf("tools.%s.with.pipeline: %w", tool.Name, err))
		}
	}
	return errors.Join(problems...)
}

func checkPipeline(raw json.RawMessage) error {
	if raw == nil {
		return fmt.Errorf("workflow %s needs a pipeline with steps here", workflows.PipelineName)
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	var pipeline workflows.PipelineSpec
	if err := decoder.Decode(&pipeline); err != nil {
		return err
	}
	return pipeline.Validate()
}
