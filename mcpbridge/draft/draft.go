// Package draft writes a catalog entry from one execution of a workflow that somebody already runs.
//
// The entry is a start: it passes the checks of catalogs, and what one execution cannot tell is in its comments. Names
// and types of what the execution was given are in it; values are not, unless they are asked for.
package draft

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"go.temporal.io/sdk/client"

	"taskbridge/mcpbridge/catalog"
)

// Options say what to write. The zero value suits most executions.
type Options struct {
	// Name of the tool; by default the workflow type in snake case.
	Name string
	// Namespace is written into the entry unless it is empty. It is that of the client.
	Namespace string
	// Examples puts values of the execution into comments. They may be secret.
	Examples bool
	// Loader checks the entry. Of the workflow types that it knows there is no draft.
	Loader catalog.Loader
}

// Write returns a catalog of one tool, in YAML, whose calls start what the execution is. Without a run ID it takes the
// last run of the workflow ID. Payloads that a codec has encoded need a client that decodes them (see package codec):
// arguments that stay encoded are an error.
func Write(ctx context.Context, temporal client.Client, workflowID, runID string, o Options) ([]byte, error) {
	seen, err := look(ctx, temporal, workflowID, runID)
	if err != nil {
		return nil, err
	}
	workflow := seen.started.GetWorkflowType().GetName()
	if _, known := o.Loader.Workflows[workflow]; known {
		return nil, fmt.Errorf("workflow type %q is taskbridge's own and gets its work from the catalog, under `with`: "+
			"write its tools by hand", workflow)
	}
	if o.Name == "" {
		o.Name = toolName(workflow)
	}
	e := entry{Options: o, execution: seen}
	data, err := e.write()
	if err != nil {
		return nil, err
	}
	if _, err := o.Loader.Parse("draft", data); err != nil {
		return nil, fmt.Errorf("the draft is not a valid catalog: %w", err)
	}
	return data, nil
}

// maxName is the longest name of a tool, in characters.
const maxName = 128

// toolName is a workflow type in snake case that a tool can have as its name.
func toolName(workflow string) string {
	switch name := snake(workflow); name {
	case "":
		return "tool"
	case catalog.CompanionWait, catalog.CompanionAnswer, catalog.CompanionCancel:
		return name + "_tool" // theirs are taken
	default:
		return name[:min(len(name), maxName)]
	}
}

// snake is a name in snake case, of ASCII letters, digits and underscores only.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	for i, r := range runes {
		switch {
		case r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r):
			b.WriteByte('_')
			continue
		case unicode.IsUpper(r) && startsWord(runes, i):
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	parts := strings.FieldsFunc(b.String(), func(r rune) bool { return r == '_' })
	return strings.Join(parts, "_")
}

// startsWord tells whether an upper-case letter does: HTTPServer is two words.
func startsWord(runes []rune, i int) bool {
	return i > 0 && (!unicode.IsUpper(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1]))
}
