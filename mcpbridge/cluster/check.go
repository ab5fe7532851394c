// Package cluster compares tool catalogs with the Temporal cluster they are for: what their tools need, and what of it is
// there.
package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/sdk/client"

	"taskbridge/mcpbridge/catalog"
)

// Level says how bad a finding is.
type Level string

const (
	OK    Level = "ok"
	Note  Level = "note"  // worth knowing, but calls may work
	Error Level = "error" // calls of the tool will not work
)

// Finding is one thing that a tool needs.
type Finding struct {
	Tool    string // name of the tool
	Level   Level
	Subject string // what was looked at, such as: task queue "builds"
	Message string // how it is; of an error also what puts it right
}

// Cluster is where the tools run.
type Cluster struct {
	Namespace string                   // of tools that name none
	Clients   map[string]client.Client // by namespace; those of others are looked at through that of Namespace
}

// Check looks for everything that the tools need: their namespace, workers on their task queues, runs of their workflow
// types, and their search attributes. Findings come by tool, in the order given.
//
// The error is that Temporal does not answer. What it refuses to tell becomes a note.
func (c Cluster) Check(ctx context.Context, tools []*catalog.Tool) ([]Finding, error) {
	return c.check(ctx, tools, (*inspector).needs)
}

// CheckSearchAttributes looks for the search attributes that the tools set: while one does not exist, Temporal starts no
// workflow that has it. The error tells everything that is missing, with the commands that create it, or that Temporal
// does not answer. What Temporal refuses to tell does not count as missing.
func (c Cluster) CheckSearchAttributes(ctx context.Context, tools []*catalog.Tool) error {
	findings, err := c.check(ctx, withSearchAttributes(tools), (*inspector).searchAttributes)
	if err != nil {
		return fmt.Errorf("check the search attributes of the catalog: %w", err)
	}
	var problems []string
	for _, f := range findings {
		if problem := f.Subject + " " + f.Message; f.Level == Error && !slices.Contains(problems, problem) {
			problems = append(problems, problem)
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return fmt.Errorf("tools of the catalog cannot start their workflows:\n%s", strings.Join(problems, "\n"))
}

// CreateSearchAttributes creates those that tools set and that do not exist yet, each of the type that its first
// template suggests. It is for servers of one's own, such as one for development.
func (c Cluster) CreateSearchAttributes(ctx context.Context, tools []*catalog.Tool) error {
	for _, tool := range withSearchAttributes(tools) {
		i := c.inspector(tool)
		attributes, err := i.listAttributes(ctx)
		if err != nil {
			return fmt.Errorf("look for search attributes: %w", err)
		}
		missing := map[string]enumspb.IndexedValueType{}
		for name, template := range tool.SearchAttributes {
			if _, found := attributes.GetCustomAttributes()[name]; !found {
				missing[name] = kindOf(template, tool.InputSchema)
			}
		}
		if len(missing) == 0 {
			continue
		}
		_, err = i.temporal.OperatorService().AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: i.namespace, SearchAttributes: missing,
		})
		if err != nil {
			return fmt.Errorf("create search attributes of tool %q: %w", tool.Name, err)
		}
	}
	return nil
}

func withSearchAttributes(tools []*catalog.Tool) []*catalog.Tool {
	return slices.DeleteFunc(slices.Clone(tools), func(t *catalog.Tool) bool { return len(t.SearchAttributes) == 0 })
}

// inspector is one of the namespace of a tool.
func (c Cluster) inspector(tool *catalog.Tool) *inspector {
	name := cmp.Or(tool.Namespace, c.Namespace)
	temporal, found := c.Clients[name]
	if !found {
		temporal = c.Clients[c.Namespace]
	}
	return &inspector{temporal: temporal, namespace: name, told: map[key]state{}}
}

// check looks at the namespace of each tool and, if that exists, for what else the tool needs.
func (c Cluster) check(ctx context.Context, tools []*catalog.Tool, needs func(*inspector, *catalog.Tool) []need) ([]Finding, error) {
	inspectors := map[string]*inspector{}
	var findings []Finding
	for _, tool := range tools {
		name := cmp.Or(tool.Namespace, c.Namespace)
		if inspectors[name] == nil {
			inspectors[name] = c.inspector(tool)
		}
		found, err := inspectors[name].inspect(ctx, tool.Name, needs(inspectors[name], tool))
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	return findings, nil
}
