// Package catalog reads tool catalogs: YAML files that name MCP tools, each of which starts a Temporal workflow.
//
// A catalog is checked as a whole before anything uses it. All mistakes of all files come back together, each with
// its place and what would be right. Besides the files, Go programs can register tools with NewTool by the same rules.
//
// Arguments of a call go through Tool.ValidateArguments, then Tool.WorkflowArguments. Input schemas that say nothing
// about additional properties are closed, so that a mistyped argument name is an error the caller can mend instead of
// an argument that is silently ignored. The JSON Schema keyword format is an annotation only, as 2020-12 has it.
package catalog

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed catalog.schema.json
var catalogSchema string

// Schema returns the JSON Schema (2020-12) of catalog files, for editors.
func Schema() []byte {
	return []byte(catalogSchema)
}

// Catalog is a set of tools with unique names. It never changes and is safe for concurrent use.
type Catalog struct {
	tools map[string]*Tool
}

// Tools returns the tools sorted by name.
func (c *Catalog) Tools() []*Tool {
	tools := make([]*Tool, 0, len(c.tools))
	for _, name := range slices.Sorted(maps.Keys(c.tools)) {
		tools = append(tools, c.tools[name])
	}
	return tools
}

// Tool returns the tool with the given name.
func (c *Catalog) Tool(name string) (*Tool, bool) {
	tool, ok := c.tools[name]
	return tool, ok
}

// Mistake is something wrong at a path from the tool's `with`; strings name members, ints items of lists.
type Mistake struct {
	Path    []any
	Message string
}

// Workflow is what a program knows of a workflow type that its catalogs name.
type Workflow struct {
	// Result is the result mode of tools that choose none, "" for the usual one.
	Result ResultMode
	// With is the JSON Schema of the tool's `with`.
	With json.RawMessage
	// Check finds what no schema can, once the schema fits. It may be nil.
	Check func(with map[string]json.RawMessage) []Mistake
}

// Loader reads catalogs. The zero value takes every workflow type as it is.
type Loader struct {
	// Workflows are checked by what the program knows of them, by workflow type.
	Workflows map[string]Workflow
}

// Load is [Loader.Load] of the zero Loader.
func Load(paths ...string) (*Catalog, error) { return Loader{}.Load(paths...) }

// Parse is [Loader.Parse] of the zero Loader.
func Parse(name string, data []byte) (*Catalog, error) { return Loader{}.Parse(name, data) }

// Load reads catalog files; of a directory it reads all *.yaml and *.yml in it, sorted, but not its subdirectories.
// A file named twice is read once. The error is an Errors with every mistake of all files.
func (known Loader) Load(paths ...string) (*Catalog, error) {
	l := loader{known: known.Workflows}
	for _, name := range l.files(paths) {
		data, err := os.ReadFile(name)
		if err != nil {
			l.failed(name, err)
			continue
		}
		l.add(name, data, os.ReadFile)
	}
	return l.catalog()
}

// Parse reads one catalog, such as an embedded one; name stands for the file in errors. Such a catalog cannot refer to
// schema files. The error is an Errors with every mistake.
func (known Loader) Parse(name string, data []byte) (*Catalog, error) {
	l := loader{known: known.Workflows}
	l.add(name, data, nil)
	return l.catalog()
}

// loader gathers the tools and mistakes of several files.
type loader struct {
	known  map[string]Workflow
	report reporter
	tools  map[string]declared
}

// failed reports a file that cannot be read.
func (l *loader) failed(name string, err error) {
	var cause *os.PathError
	if errors.As(err, &cause) {
		err = cause.Err
	}
	l.report.add(position{file: name}, nil, "cannot be read: %v", err)
}

// files expands directories.
func (l *loader) files(paths []string) []string {
	var files []string
	for _, p := range paths {
		p = filepath.Clean(p)
		info, err := os.Stat(p)
		switch {
		case err != nil:
			l.failed(p, err)
		case info.IsDir():
			files = append(files, l.directory(p)...)
		default:
			files = append(files, p)
		}
	}
	return unique(files)
}

func (l *loader) directory(name string) []string {
	entries, err := os.ReadDir(name) // sorted by name
	if err != nil {
		l.failed(name, err)
		return nil
	}
	var files []string
	for _, entry := range entries {
		if isYAML(entry.Name()) && !entry.IsDir() {
			files = append(files, filepath.Join(name, entry.Name()))
		}
	}
	if len(files) == 0 {
		l.report.add(position{file: name}, nil, "the directory has no .yaml or .yml files")
	}
	return files
}

func unique(names []string) []string {
	var kept []string
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

func isYAML(name string) bool {
	extension := filepath.Ext(name)
	return extension == ".yaml" || extension == ".yml"
}

// relativeTo resolves a file name written in the given catalog.
func relativeTo(catalog, name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(filepath.Dir(catalog), name)
}

// add decodes one file; read is nil when it must not name others.
func (l *loader) add(name string, data []byte, read func(string) ([]byte, error)) {
	root := parseYAML(name, data, catalogShape, &l.report)
	if root == nil {
		return
	}
	if l.tools == nil {
		l.tools = map[string]declared{}
	}
	f := file{name: name, read: read, known: l.known, report: &l.report}
	for _, d := range f.decode(root) {
		if first, ok := l.tools[d.tool.Name]; ok {
			l.report.add(d.at, path{"tools", d.tool.Name}, "is already declared at %v", first.at)
			continue
		}
		l.tools[d.tool.Name] = d
	}
}

// catalog ends loading: it returns either the tools or the mistakes, sorted by place within each file.
func (l *loader) catalog() (*Catalog, error) {
	if len(l.report.errors) > 0 {
		return nil, sorted(l.report.errors)
	}
	tools := make(map[string]*Tool, len(l.tools))
	for name, d := range l.tools {
		tools[name] = d.tool
	}
	return &Catalog{tools}, nil
}

func sorted(errs Errors) Errors {
	slices.SortStableFunc(errs, func(a, b *Error) int {
		return strings.Compare(sortKey(a), sortKey(b))
	})
	return errs
}

func sortKey(e *Error) string {
	return fmt.Sprintf("%s:%9d:%9d", e.File, e.Line, e.Column)
}
