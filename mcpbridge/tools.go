package mcpbridge

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"
	"go.temporal.io/sdk/workflow"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// toolSet are the tools that run as workflows, by name.
type toolSet struct {
	mu     sync.RWMutex
	byName map[string]*catalog.Tool
	// handsOver says that at least one of them hands over, so that the companions are needed.
	handsOver bool
}

func newToolSet() *toolSet { return &toolSet{byName: map[string]*catalog.Tool{}} }

// add adds a tool and reports whether it is the first that hands over.
func (s *toolSet) add(tool *catalog.Tool) (firstHandsOver bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[tool.Name] = tool
	firstHandsOver = tool.Fallback == catalog.FallbackHandoff && !s.handsOver
	s.handsOver = s.handsOver || firstHandsOver
	return firstHandsOver
}

// isCompanion reports whether a name is that of a companion tool, and there are companions.
func (s *toolSet) isCompanion(name string) bool {
	switch name {
	case catalog.CompanionWait, catalog.CompanionAnswer, catalog.CompanionCancel:
		s.mu.RLock()
		defer s.mu.RUnlock()
		return s.handsOver
	}
	return false
}

func (s *toolSet) get(name string) (*catalog.Tool, bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	tool, ok := s.byName[name]
	return tool, ok
}

// taskSupport says for each tool whether it can be called as a task, in the words of MCP 2025-11-25.
func (s *toolSet) taskSupport() map[string]string {
	words := map[catalog.TaskMode]string{catalog.TaskRequired: "required", catalog.TaskOptional: "optional", catalog.TaskNever: "forbidden"}
	support := map[string]string{}
	for _, tool := range s.list() {
		support[tool.Name] = words[tool.Task]
	}
	return support
}

func (s *toolSet) list() []*catalog.Tool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.SortedFunc(maps.Values(s.byName), func(a, b *catalog.Tool) int { return strings.Compare(a.Name, b.Name) })
}

// AddTool offers a Go workflow as a tool. What tool leaves open comes from the types: the workflow type from the
// function's name, the input schema from In, the output schema from Out if that is a struct, and result mode mcp if Out
// is *signals.ToolResult. A tool without a name is an error, and so is anything else that a catalog entry may not say.
func AddTool[In, Out any](b *Bridge, tool catalog.Tool, run func(workflow.Context, In) (Out, error)) error {
	if tool.Workflow == "" {
		tool.Workflow = functionName(run)
	}
	if tool.InputSchema == nil {
		schema, err := schemaOf[In]()
		if err != nil {
			return fmt.Errorf("tool %s: input: %w", tool.Name, err)
		}
		tool.InputSchema = schema
	}
	out := reflect.TypeFor[Out]()
	if out == reflect.TypeFor[*signals.ToolResult]() {
		tool.Result = catalog.ResultMCP
	} else if out.Kind() == reflect.Struct && tool.OutputSchema == nil {
		schema, err := schemaOf[Out]()
		if err != nil {
			return fmt.Errorf("tool %s: output: %w", tool.Name, err)
		}
		tool.OutputSchema = schema
	}
	complete, err := catalog.NewTool(tool)
	if err != nil {
		return err
	}
	return b.add(complete)
}

func schemaOf[T any]() (json.RawMessage, error) {
	schema, err := jsonschema.For[T](nil)
	if err != nil {
		return nil, err
	}
	return json.Marshal(schema)
}

// functionName is a function's name as Temporal registers it.
func functionName(function any) string {
	full := runtime.FuncForPC(reflect.ValueOf(function).Pointer()).Name()
	return strings.TrimSuffix(full[strings.LastIndexByte(full, '.')+1:], "-fm")
}
