package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"taskbridge/internal/mcpclient"
)

func newToolsCommand(url string, s streams) *cobra.Command {
	var (
		server target
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "tools [NAME]",
		Short: "List the tools of a server, or show one",
		Args:  between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := server.client(cmd)
			if err != nil {
				return err
			}
			tools, err := client.Tools(cmd.Context())
			if err != nil {
				return failed(err)
			}
			text, err := renderTools(tools, args, asJSON, server.command)
			if err != nil {
				return failed(err)
			}
			_, err = fmt.Fprint(s.Out, text)
			return failed(err)
		},
	}
	server.addFlags(cmd, url)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the list, or the tool, as the server sent it")
	return cmd
}

// renderTools shows all tools, or the one whose name is given. command makes a command line to try it.
func renderTools(tools []mcpclient.Tool, names []string, asJSON bool, command func(...string) string) (string, error) {
	switch {
	case len(names) == 0 && asJSON:
		raw := make([]json.RawMessage, len(tools))
		for i, tool := range tools {
			raw[i] = tool.Raw
		}
		list, err := json.Marshal(raw)
		return string(list) + "\n", err
	case len(names) == 0:
		return renderToolTable(tools), nil
	}
	i := slices.IndexFunc(tools, func(tool mcpclient.Tool) bool { return tool.Name == names[0] })
	switch {
	case i < 0:
		return "", usageErrorf("the server has no tool %q; list its tools with: %s", names[0], command("tools"))
	case asJSON:
		return string(tools[i].Raw) + "\n", nil
	}
	return renderTool(tools[i], command), nil
}

func renderToolTable(tools []mcpclient.Tool) string {
	if len(tools) == 0 {
		return "the server has no tools\n"
	}
	var table strings.Builder
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(columns, "NAME\tDESCRIPTION")
	for _, tool := range tools {
		description := printable(headline(tool), false)
		if hints := hints(tool); hints != "" {
			description += " (" + hints + ")"
		}
		_, _ = fmt.Fprintf(columns, "%s\t%s\n", printable(tool.Name, false), description)
	}
	_ = columns.Flush() // a strings.Builder takes everything
	return table.String()
}

// headline is a tool's title, else the first line of its description.
func headline(tool mcpclient.Tool) string {
	for _, title := range []string{tool.Title, tool.Annotations.Title} {
		if title != "" {
			return title
		}
	}
	return firstLine(tool.Description)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

// hints are what a server says about how a tool behaves.
func hints(tool mcpclient.Tool) string {
	var hints []string
	if support := tool.Execution.TaskSupport; support != "" {
		hints = append(hints, "task "+printable(support, false))
	}
	if tool.Annotations.ReadOnlyHint {
		hints = append(hints, "read-only")
	}
	if destructive := tool.Annotations.DestructiveHint; destructive != nil && *destructive {
		hints = append(hints, "destructive")
	}
	return strings.Join(hints, ", ")
}

// renderTool is all about one tool for a person who wants to call it.
func renderTool(tool mcpclient.Tool, command func(...string) string) string {
	var text strings.Builder
	text.WriteString(printable(tool.Name, false))
	if hints := hints(tool); hints != "" {
		text.WriteString(" (" + hints + ")")
	}
	text.WriteString("\n")
	for _, paragraph := range []string{tool.Title, strings.TrimSpace(tool.Description)} {
		if paragraph != "" {
			text.WriteString("\n" + printable(paragraph, true) + "\n")
		}
	}
	text.WriteString(renderSchema("Arguments", tool.InputSchema))
	text.WriteString(renderSchema("Structured result", tool.OutputSchema))
	call := []string{"call", shellQuote(tool.Name)}
	if arguments := example(tool.InputSchema); arguments != "{}" {
		call = append(call, shellQuote(arguments))
	}
	text.WriteString("\nExample:\n  " + command(call...) + "\n")
	return text.String()
}

func renderSchema(title string, schema json.RawMessage) string {
	var indented bytes.Buffer
	if schema == nil || json.Indent(&indented, schema, "  ", "  ") != nil {
		return ""
	}
	return fmt.Sprintf("\n%s:\n  %s\n", title, indented.String())
}
