package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"taskbridge/mcpbridge/internal/expression"
	"taskbridge/mcpbridge/internal/wording"
)

// ArgumentMode says how a tool's arguments reach its workflow.
type ArgumentMode string

const (
	ArgumentsObject     ArgumentMode = "object"     // one argument: an object of all of them
	ArgumentsPositional ArgumentMode = "positional" // one workflow argument each, in the order of Positional
	ArgumentsNone       ArgumentMode = "none"       // the workflow takes none
)

// TaskMode says whether a call of a tool is answered with a task.
type TaskMode string

const (
	TaskRequired TaskMode = "required" // only callers that can handle tasks may call it
	TaskOptional TaskMode = "optional" // a task for callers that can handle one, else the tool's fallback
	TaskNever    TaskMode = "never"    // the call always waits for the result
)

// FallbackMode says what a call gets from a caller that cannot handle tasks.
type FallbackMode string

const (
	FallbackWait    FallbackMode = "wait"    // the call stays open until the workflow ends
	FallbackHandoff FallbackMode = "handoff" // the task's ID after HandoffAfter, for the companion tools to go on with
	FallbackRefuse  FallbackMode = "refuse"  // an error; it goes with TaskRequired
)

// The companion tools let callers that cannot handle tasks go on with one that was handed off. No other tool may have
// their names.
const (
	CompanionWait   = "task_wait"
	CompanionAnswer = "task_answer"
	CompanionCancel = "task_cancel"
)

// ResultMode says how a workflow's result becomes the tool's result.
type ResultMode string

const (
	ResultAuto ResultMode = "auto" // by the JSON type of the result
	ResultText ResultMode = "text" // as text content
	ResultJSON ResultMode = "json" // as structured content
	ResultMCP  ResultMode = "mcp"  // it already is a CallToolResult
)

// CancelMode says what cancelling a task does to its workflow.
type CancelMode string

const (
	CancelRequest   CancelMode = "request"   // asks the workflow, which may clean up first
	CancelTerminate CancelMode = "terminate" // ends it at once
)

// Defaults of a tool's policy.
const (
	DefaultRetention    = 24 * time.Hour
	DefaultPollInterval = time.Second
	DefaultHandoffAfter = 45 * time.Second // most hosts give up on a call after about 60 seconds
)

// Tool is an MCP tool whose calls start a workflow. Tools of a catalog and of NewTool are checked, complete and safe
// for concurrent use as long as nobody changes them.
type Tool struct {
	Name        string // unique in a catalog; 1 to 128 of A-Z a-z 0-9 _ . -
	Title       string
	Description string
	Workflow    string // workflow type; "" if Attach is set
	TaskQueue   string
	Namespace   string  // Temporal namespace; "" for the one that the front end is connected to
	Attach      *Attach // nil for tools that start workflows

	InputSchema  json.RawMessage // JSON Schema of the arguments; compact, keys in the order written
	OutputSchema json.RawMessage // JSON Schema of the structured result; nil when the tool declares none

	Arguments  ArgumentMode
	Positional []string                   // argument names in workflow order, with ArgumentsPositional
	With       map[string]json.RawMessage // arguments fixed by the operator; clients neither see nor change them

	Task             TaskMode
	Fallback         FallbackMode  // by default refuse if Task is required, else wait; refuse makes an optional Task required
	HandoffAfter     time.Duration // how long a call waits before a handoff, 1s to 10m; 0 with other fallbacks
	Result           ResultMode
	ResultPath       string        // JSON Pointer (RFC 6901) to the part of the workflow's result that counts; "" for all
	ExecutionTimeout time.Duration // of the whole workflow, at least 1s; 0 is no limit
	RunTimeout       time.Duration // of one run, at least 1s; 0 is no limit
	TaskTimeout      time.Duration // of one workflow task, 1s to 2m; 0 is Temporal's default
	Retry            *Retry        // nil when a workflow that fails does not run again
	Priority         *Priority     // nil for Temporal's default
	Versioning       *Versioning   // nil for that of the workers
	Dedupe           *Dedupe       // nil when every call starts a workflow
	Retention        time.Duration // how long a finished task can be read
	PollInterval     time.Duration // suggested to clients, 100ms to 1h
	InlineWait       time.Duration // how long a call waits for a quick result before it hands out a task, at most 1m
	Cancel           CancelMode
	Confirm          *Confirm // nil when nothing is asked before the start

	// Templates are JSON in whose strings ${…} stands for a CEL expression of args, the call's arguments. A string that is
	// nothing but one expression becomes its value, of whatever type.
	IDSuffix         string                     // a template of what task IDs end with, for people to recognize them
	Memo             map[string]json.RawMessage // templates by name
	SearchAttributes map[string]json.RawMessage // templates by name; the attributes have to exist in the namespace

	Status *Status // nil for a status derived from what Temporal knows
	Inputs []Input // questions of a workflow that does not follow the contract

	Annotations *Annotations
	Icons       []Icon

	input        *jsonschema.Schema
	confirmation *jsonschema.Schema
	defaults     []member // top-level properties with a default, in schema order
	headers      []HeaderParam
	integers     []HeaderParam // the headers whose values are integers

	schema       *node // of the arguments
	idSuffix     *expression.Text
	memo, search map[string]*expression.Template
}

// Confirm is a question put to the caller before the workflow starts.
type Confirm struct {
	Message  string
	Schema   json.RawMessage // MCP elicitation form; an empty form by default
	Argument string          // the workflow argument that receives the accepted form; "" drops it
}

// Annotations are hints about what a tool does, in MCP's wire form; nil leaves a hint out.
type Annotations struct {
	ReadOnlyHint    *bool `json:"readOnlyHint,omitempty"`
	DestructiveHint *bool `json:"destructiveHint,omitempty"`
	IdempotentHint  *bool `json:"idempotentHint,omitempty"`
	OpenWorldHint   *bool `json:"openWorldHint,omitempty"`
}

// Icon is a picture of the tool, in MCP's wire form.
type Icon struct {
	Src      string   `json:"src"` // an https: or data: URI
	MIMEType string   `json:"mimeType,omitempty"`
	Sizes    []string `json:"sizes,omitempty"` // like 48x48, or any
	Theme    string   `json:"theme,omitempty"` // light or dark
}

// NewTool checks a tool registered in Go by the rules of catalog files, fills in defaults and compiles its schemas.
// The error is an Errors with every mistake, without files and lines. The given value is not changed.
func NewTool(t Tool) (*Tool, error) {
	var report reporter
	t.complete(check{fail: func(p path, format string, args ...any) {
		report.add(position{}, path{"tools", t.Name}.join(p), format, args...)
	}})
	if err := report.errors.orNil(); err != nil {
		return nil, err
	}
	return &t, nil
}

// HeaderParam is an argument that HTTP clients repeat in the header Mcp-Param-<Name>
// (MCP 2026-07-28, streamable HTTP, "Custom Headers from Tool Parameters").
type HeaderParam struct {
	Name string
	Path []string // member names from the arguments down to the value
}

// HeaderParams lists the arguments that the input schema marks with x-mcp-header, in schema order.
func (t *Tool) HeaderParams() []HeaderParam {
	return slices.Clone(t.headers)
}

// check is where complete sends what it finds.
type check struct {
	fail func(p path, format string, args ...any) // p is relative to the tool
	skip map[string]bool                          // fields already known to be wrong
}

// unreported is for where the mistake itself is told otherwise, or is nobody's here.
var unreported = check{fail: func(path, string, ...any) {}}

// complete fills in defaults, compiles and reports everything that is wrong with the tool.
func (t *Tool) complete(c check) {
	t.input, t.confirmation, t.defaults, t.headers, t.integers = nil, nil, nil, nil, nil
	t.checkFollowing(c)
	t.fillDefaults()
	t.checkNames(c)
	t.checkPolicy(c)
	t.checkStart(c)
	t.checkResultPath(c)
	t.completeFallback(c)
	properties := t.completeInput(c)
	t.completeOutput(c)
	t.completeWith(c, properties)
	t.completeConfirm(c, properties)
	t.checkArguments(c, properties)
	t.completeCall(c, properties)
	t.completeUnchanged(c)
	t.checkIcons(c)
}

func (t *Tool) fillDefaults() {
	setDefault(&t.Arguments, ArgumentsObject)
	setDefault(&t.Task, TaskOptional)
	setDefault(&t.Result, ResultAuto)
	setDefault(&t.Cancel, CancelRequest)
	setDefault(&t.Retention, DefaultRetention)
	setDefault(&t.PollInterval, DefaultPollInterval)
	t.Positional = slices.Clone(t.Positional)
	t.Icons = slices.Clone(t.Icons)
	if t.Attach != nil {
		attach := *t.Attach
		t.Attach = &attach
	}
}

func setDefault[T comparable](value *T, standard T) {
	var zero T
	if *value == zero {
		*value = standard
	}
}

var (
	toolName   = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)
	companions = []string{CompanionWait, CompanionAnswer, CompanionCancel}
)

func (t *Tool) checkNames(c check) {
	if !toolName.MatchString(t.Name) {
		c.fail(nil, "%q is not a tool name; use 1 to 128 of the characters A-Z, a-z, 0-9, _, - and .", shorten(t.Name))
	}
	if slices.Contains(companions, t.Name) {
		c.fail(nil, "%q is reserved for going on with a task that was handed off; choose another name", t.Name)
	}
	if t.Attach != nil {
		return
	}
	if t.Workflow == "" {
		c.fail(path{"workflow"}, "is missing; name the workflow type to start")
	}
	if t.TaskQueue == "" && !c.skip["taskQueue"] {
		c.fail(path{"taskQueue"}, "is missing; name the task queue of the workflow's workers here or in defaults")
	}
}

func (t *Tool) checkPolicy(c check) {
	fail := func(field, problem string) {
		if problem != "" {
			c.fail(path{field}, "%s", problem)
		}
	}
	fail("arguments", argumentModes.check(t.Arguments))
	fail("task", taskModes.check(t.Task))
	if t.Fallback != "" {
		fail("fallback", fallbackModes.check(t.Fallback))
	}
	fail("result", resultModes.check(t.Result))
	fail("cancel", cancelModes.check(t.Cancel))
	fail("retention", retentions.check(t.Retention))
	fail("pollInterval", pollIntervals.check(t.PollInterval))
	fail("inlineWait", inlineWaits.check(t.InlineWait))
}

// completeFallback makes task mode and fallback agree: a task is required of those who are otherwise refused.
func (t *Tool) completeFallback(c check) {
	if c.skip["task"] || c.skip["fallback"] {
		return
	}
	switch {
	case t.Fallback == "" && t.Task == TaskRequired:
		t.Fallback = FallbackRefuse
	case t.Fallback == "":
		t.Fallback = FallbackWait
	case t.Fallback == FallbackRefuse && t.Task == TaskOptional:
		t.Task = TaskRequired
	}
	if problem := fallbackProblem(t.Task, t.Fallback); problem != "" {
		c.fail(path{"fallback"}, "%s", problem)
	}
	t.completeHandoff(c)
}

func (t *Tool) completeHandoff(c check) {
	at := path{"handoffAfter"}
	switch t.Fallback {
	case FallbackHandoff:
		setDefault(&t.HandoffAfter, DefaultHandoffAfter)
		if problem := handoffs.check(t.HandoffAfter); problem != "" {
			c.fail(at, "%s", problem)
		}
	case FallbackWait, FallbackRefuse:
		if t.HandoffAfter != 0 {
			c.fail(at, `has no meaning without "fallback: handoff"; write that too or remove this`)
		}
	}
}

// fallbackProblem returns what is wrong with the two together, or "".
func fallbackProblem(task TaskMode, fallback FallbackMode) string {
	switch {
	case task == TaskRequired && (fallback == FallbackWait || fallback == FallbackHandoff):
		return `"task: required" refuses calls without a task; leave fallback out, or make the task optional`
	case task == TaskNever && fallback == FallbackHandoff:
		return `"task: never" always waits; leave fallback out, or make the task optional`
	case task == TaskNever && fallback == FallbackRefuse:
		return `with "task: never" nobody could call the tool; leave fallback out, or make the task required`
	}
	return ""
}

// choice is a field with a fixed set of values.
type choice[T ~string] struct {
	what   string
	values []T
}

var (
	argumentModes = choice[ArgumentMode]{"an argument mode", []ArgumentMode{ArgumentsObject, ArgumentsPositional, ArgumentsNone}}
	taskModes     = choice[TaskMode]{"a task mode", []TaskMode{TaskRequired, TaskOptional, TaskNever}}
	fallbackModes = choice[FallbackMode]{"a fallback", []FallbackMode{FallbackWait, FallbackHandoff, FallbackRefuse}}
	resultModes   = choice[ResultMode]{"a result mode", []ResultMode{ResultAuto, ResultText, ResultJSON, ResultMCP}}
	dedupeModes   = choice[DedupeMode]{"a way to tell calls apart", []DedupeMode{DedupeArguments, DedupeKey}}
	cancelModes   = choice[CancelMode]{"a cancel mode", []CancelMode{CancelRequest, CancelTerminate}}
	themes        = choice[string]{"a theme", []string{"light", "dark"}}
)

// check returns what is wrong with the value, or "".
func (c choice[T]) check(value T) string {
	if slices.Contains(c.values, value) {
		return ""
	}
	return fmt.Sprintf("%q is not %s; %s", shorten(string(value)), c.what, c.use())
}

func (c choice[T]) use() string {
	names := make([]string, len(c.values))
	for i, v := range c.values {
		names[i] = string(v)
	}
	return "use " + wording.List(names, "or")
}

// limits bound a duration field, both ends included; max 0 is no upper bound.
type limits struct {
	min, max time.Duration
}

var (
	workflowTimeouts = limits{min: time.Second} // of executions and runs
	taskTimeouts     = limits{min: time.Second, max: 2 * time.Minute}
	retryIntervals   = limits{min: time.Millisecond}
	retentions       = limits{min: time.Millisecond} // the unit it is stored in
	pollIntervals    = limits{min: 100 * time.Millisecond, max: time.Hour}
	inlineWaits      = limits{max: time.Minute}
	handoffs         = limits{min: time.Second, max: 10 * time.Minute}
)

// check returns what is wrong with the duration, or "".
func (l limits) check(d time.Duration) string {
	switch {
	case d < 0 && l.min == 0:
		return formatDuration(d) + " is negative"
	case d < l.min:
		return fmt.Sprintf("%s is too short; the shortest is %s", formatDuration(d), formatDuration(l.min))
	case l.max > 0 && d > l.max:
		return fmt.Sprintf("%s is too long; the longest is %s", formatDuration(d), formatDuration(l.max))
	}
	return ""
}

// formatDuration writes 1h instead of Go's 1h0m0s.
func formatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// readJSON parses JSON that a tool carries, reporting at the given field. It returns nil if anything is wrong with it.
func readJSON(c check, field path, schema json.RawMessage) *node {
	var report reporter
	root := parseJSON("", schema, &report)
	for _, e := range report.errors {
		c.fail(field, "%s", e.Error())
	}
	if len(report.errors) > 0 {
		return nil
	}
	return root
}

// completeInput checks and compiles the input schema. It returns the schema's root for its properties, or nil when
// the schema cannot be used.
func (t *Tool) completeInput(c check) *node {
	if c.skip["input"] || c.skip["inputFile"] {
		return nil
	}
	if len(t.InputSchema) == 0 {
		t.InputSchema = json.RawMessage(`{"type":"object"}`)
	}
	at := path{"input"}
	root := readJSON(c, at, t.InputSchema)
	if root == nil {
		return nil
	}
	if problem := objectAtRoot(root); problem != "" {
		c.fail(at, "%s", problem)
		return nil
	}
	closeObject(root)
	t.InputSchema = root.json()
	var ok bool
	if t.input, ok = compile(c, at, root); !ok {
		return nil
	}
	checkDefaults(c, at, root, t.input)
	t.headers, t.integers = headerParams(c, at, root)
	for _, m := range root.get("properties").entries() {
		if standard := m.value.get("default"); standard != nil {
			t.defaults = append(t.defaults, member{key: m.key, value: standard})
		}
	}
	return root
}

func (t *Tool) completeOutput(c check) {
	if len(t.OutputSchema) == 0 || c.skip["output"] || c.skip["outputFile"] {
		return
	}
	at := path{"output"}
	root := readJSON(c, at, t.OutputSchema)
	if root == nil {
		return
	}
	if root.kind != objectNode {
		c.fail(at, "a schema is a mapping, found %s", root.describe())
		return
	}
	t.OutputSchema = root.json()
	compile(c, at, root)
}

// completeWith brings the operator's arguments into compact form and keeps them apart from those of the client.
func (t *Tool) completeWith(c check, input *node) {
	if c.skip["with"] {
		return
	}
	with := make(map[string]json.RawMessage, len(t.With))
	for _, name := range slices.Sorted(maps.Keys(t.With)) {
		at := path{"with", name}
		value := readJSON(c, at, t.With[name])
		if value == nil {
			continue
		}
		with[name] = value.json()
		if property := property(input, name); property != "" {
			c.fail(at, "the input schema has a property %q too; the operator or the client sets an argument, not both", property)
		}
	}
	t.With = with
}

// property returns the input property that a worker could take for the given name. Case does not count, because Go
// workers match JSON names without regard to it.
func property(input *node, name string) string {
	if input == nil {
		return ""
	}
	for _, m := range input.get("properties").entries() {
		if strings.EqualFold(m.key, name) {
			return m.key
		}
	}
	return ""
}

func (t *Tool) completeConfirm(c check, input *node) {
	if t.Confirm == nil {
		return
	}
	confirm := *t.Confirm
	t.Confirm = &confirm
	if strings.TrimSpace(confirm.Message) == "" {
		c.fail(path{"confirm", "message"}, "is missing; write the question to ask")
	}
	t.confirmation, _ = completeForm(c, path{"confirm", "schema"}, &t.Confirm.Schema)
	if confirm.Argument == "" {
		return
	}
	at := path{"confirm", "argument"}
	if property := property(input, confirm.Argument); property != "" {
		c.fail(at, "the input schema has a property %q too; choose another name", property)
	}
	for name := range t.With {
		if strings.EqualFold(name, confirm.Argument) {
			c.fail(at, "with sets %q too; choose another name", name)
		}
	}
}

// completeForm checks and compiles a form; by default it is an empty one. Answers with members that were not asked for are
// not accepted, so the compiled schema is closed even though MCP's form schemas cannot say so. Both are nil if something is
// wrong with the form.
func completeForm(c check, at path, schema *json.RawMessage) (answers *jsonschema.Schema, form *node) {
	if len(*schema) == 0 {
		*schema = json.RawMessage(`{"type":"object","properties":{}}`)
	}
	root := readJSON(c, at, *schema)
	if root == nil || !checkForm(c, at, root) {
		return nil, nil
	}
	*schema = root.json()
	closed := *root
	closeObject(&closed)
	compiled, ok := compile(c, at, &closed)
	if !ok {
		return nil, nil
	}
	checkDefaults(c, at, root, compiled)
	return compiled, root
}

// checkArguments finds arguments that the argument mode would lose.
func (t *Tool) checkArguments(c check, input *node) {
	if c.skip["arguments"] || c.skip["positional"] {
		return
	}
	if t.Arguments != ArgumentsPositional && len(t.Positional) > 0 {
		c.fail(path{"positional"}, `has no meaning here; write "arguments: positional" or remove it`)
	}
	switch t.Arguments {
	case ArgumentsNone:
		t.checkNoArguments(c, input)
	case ArgumentsPositional:
		t.checkPositional(c, input)
	}
}

func (t *Tool) checkNoArguments(c check, input *node) {
	const lost = `would never reach the workflow with "arguments: none"`
	if input != nil && len(input.get("properties").entries()) > 0 {
		c.fail(path{"input", "properties"}, lost)
	}
	if len(t.With) > 0 {
		c.fail(path{"with"}, lost)
	}
	if t.Confirm != nil && t.Confirm.Argument != "" {
		c.fail(path{"confirm", "argument"}, lost)
	}
}

func (t *Tool) checkPositional(c check, input *node) {
	at := path{"positional"}
	if len(t.Positional) == 0 {
		c.fail(at, `is missing; list the argument names in the workflow's order, or use "arguments: object" or "none"`)
		return
	}
	if input == nil || c.skip["with"] || c.skip["confirm"] {
		return
	}
	known := t.argumentNames(input)
	for i, name := range t.Positional {
		if slices.Contains(t.Positional[:i], name) {
			c.fail(at.with(i), "%q is listed twice", name)
		}
		if !slices.Contains(known, name) && !composed(input) {
			c.fail(at.with(i), "%s", wording.Unknown(fmt.Sprintf("argument %q", name), name, known))
		}
	}
	for _, name := range known {
		if !slices.Contains(t.Positional, name) {
			c.fail(at, "does not list %q, which would never reach the workflow", name)
		}
	}
}

// argumentNames lists everything a workflow can get: properties, then operator arguments, then the confirmation.
func (t *Tool) argumentNames(input *node) []string {
	var names []string
	for _, m := range input.get("properties").entries() {
		names = append(names, m.key)
	}
	names = append(names, slices.Sorted(maps.Keys(t.With))...)
	if t.Confirm != nil && t.Confirm.Argument != "" {
		names = append(names, t.Confirm.Argument)
	}
	return names
}

var iconSize = regexp.MustCompile(`^([1-9][0-9]*x[1-9][0-9]*|any)$`)

func (t *Tool) checkIcons(c check) {
	for i, icon := range t.Icons {
		at := path{"icons", i}
		if problem := iconSource(icon.Src); problem != "" {
			c.fail(at.with("src"), "%s", problem)
		}
		for j, size := range icon.Sizes {
			if !iconSize.MatchString(size) {
				c.fail(at.with("sizes").with(j), `%q is not an icon size; write it like "48x48" or "any"`, shorten(size))
			}
		}
		if problem := themes.check(icon.Theme); icon.Theme != "" && problem != "" {
			c.fail(at.with("theme"), "%s", problem)
		}
	}
}

func iconSource(src string) string {
	if src == "" {
		return "is missing; give an https: or data: URI"
	}
	u, err := url.Parse(src)
	if err != nil || u.Scheme != "data" && (u.Scheme != "https" || u.Host == "") {
		return fmt.Sprintf("%q is not an https: or data: URI", shorten(src))
	}
	return ""
}
