package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"taskbridge/mcpbridge/internal/wording"
)

// cursor is a value being decoded, with its place for complaints.
type cursor struct {
	report *reporter
	path   path
	node   *node
}

func (c cursor) fail(format string, args ...any) {
	if !c.report.marked(c.path) {
		c.report.mark(c.path)
		c.report.add(c.node.at, c.path, format, args...)
	}
}

func (c cursor) is(kind nodeKind, expected string) bool {
	if c.node.kind == kind {
		return true
	}
	c.fail("expected %s, found %s", expected, c.node.describe())
	return false
}

func (c cursor) items() []cursor {
	if !c.is(listNode, "a list") {
		return nil
	}
	items := make([]cursor, len(c.node.items))
	for i, item := range c.node.items {
		items[i] = cursor{c.report, c.path.with(i), item}
	}
	return items
}

// field decodes one field of a T.
type field[T any] struct {
	name   string
	policy bool // may stand in defaults as well
	set    func(c cursor, t *T)
}

func names[T any](fields []field[T]) []string {
	var names []string
	for _, f := range fields {
		names = append(names, f.name)
	}
	return names
}

// decode sets the fields of t from a mapping. It returns the names of those with a mistake.
func decode[T any](c cursor, fields []field[T], t *T) map[string]bool {
	wrong := map[string]bool{}
	if !c.is(objectNode, "a mapping") {
		return wrong
	}
	for _, m := range c.node.members {
		below := c.path.with(m.key)
		i := slices.IndexFunc(fields, func(f field[T]) bool { return f.name == m.key })
		if i < 0 {
			c.report.add(m.at, below, "%s", unknownField(m.key, names(fields)))
			continue
		}
		fields[i].set(cursor{c.report, below, m.value}, t)
		wrong[m.key] = c.report.marked(below)
	}
	return wrong
}

// elsewhere says where what people look for under other names is.
var elsewhere = map[string]string{
	"cron":           "a task ends, and a cron workflow does not; use a Temporal Schedule",
	"cronSchedule":   "a task ends, and a cron workflow does not; use a Temporal Schedule",
	"schedule":       "a catalog starts workflows when they are called; use a Temporal Schedule for others",
	"workflowId":     "task IDs are random, so that nobody can guess them; idSuffix ends them, and attach.workflowId follows a workflow that is there",
	"id":             "task IDs are random, so that nobody can guess them; idSuffix ends them, and attach.workflowId follows a workflow that is there",
	"timeout":        "write which: executionTimeout, of the workflow with all its runs, runTimeout or taskTimeout",
	"retryPolicy":    "write it as retry",
	"live":           "what an unchanged workflow tells about itself is asked with status",
	"progress":       "what an unchanged workflow tells about itself is asked with status",
	"query":          "a query belongs into status, or into a question under inputs",
	"signal":         "a signal is sent by an answer: inputs.NAME.accept.signal",
	"update":         "an update is sent by an answer: inputs.NAME.accept.update",
	"questions":      "questions belong under inputs",
	"elicit":         "questions belong under inputs",
	"inputSchema":    "the schema of the arguments is written as input",
	"parameters":     "the schema of the arguments is written as input",
	"outputSchema":   "the schema of the result is written as output",
	"search":         "write it as searchAttributes",
	"idempotencyKey": `write "dedupe: key"; the key comes with the call`,
}

// unknownField words the complaint about a field that there is not.
func unknownField(name string, known []string) string {
	if hint, ok := elsewhere[name]; ok {
		return hint
	}
	return wording.Unknown("field", name, known)
}

func textField[T any](name string, to func(*T) *string) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		if !c.is(textNode, "a string") {
			return
		}
		if c.node.text == "" {
			c.fail("is empty; write something or remove it")
		}
		*to(t) = c.node.text
	}}
}

func choiceField[T any, E ~string](name string, values choice[E], to func(*T) *E) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		if c.node.kind != textNode {
			c.fail("expected %s, found %s; %s", values.what, c.node.describe(), values.use())
		} else if problem := values.check(E(c.node.text)); problem != "" {
			c.fail("%s", problem)
		} else {
			*to(t) = E(c.node.text)
		}
	}}
}

func durationField[T any](name string, within limits, to func(*T) *time.Duration) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		d, problem := duration(c.node)
		if problem == "" {
			problem = within.check(d)
		}
		if problem != "" {
			c.fail("%s", problem)
			return
		}
		*to(t) = d
	}}
}

func boolField[T any](name string, set func(*T, bool)) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		if c.node.kind == boolNode {
			set(t, c.node.text == "true")
			return
		}
		c.fail("expected true or false, found %s", c.node.describe())
	}}
}

func policy[T any](f field[T]) field[T] {
	f.policy = true
	return f
}

// toolFields are the fields of a tool but the two that name files.
func toolFields() []field[Tool] {
	return []field[Tool]{
		textField("title", func(t *Tool) *string { return &t.Title }),
		textField("description", func(t *Tool) *string { return &t.Description }),
		textField("workflow", func(t *Tool) *string { return &t.Workflow }),
		policy(textField("taskQueue", func(t *Tool) *string { return &t.TaskQueue })),
		policy(textField("namespace", func(t *Tool) *string { return &t.Namespace })),
		{name: "attach", set: func(c cursor, t *Tool) {
			t.Attach = new(Attach)
			decode(c, attachFields(), t.Attach)
		}},
		schemaField("input", func(t *Tool) *json.RawMessage { return &t.InputSchema }),
		schemaField("output", func(t *Tool) *json.RawMessage { return &t.OutputSchema }),
		choiceField("arguments", argumentModes, func(t *Tool) *ArgumentMode { return &t.Arguments }),
		{name: "positional", set: func(c cursor, t *Tool) { t.Positional = c.texts() }},
		valuesField("with", "argument names", func(t *Tool) *map[string]json.RawMessage { return &t.With }),
		textField("idSuffix", func(t *Tool) *string { return &t.IDSuffix }),
		valuesField("memo", "memo fields", func(t *Tool) *map[string]json.RawMessage { return &t.Memo }),
		valuesField("searchAttributes", "search attributes", func(t *Tool) *map[string]json.RawMessage { return &t.SearchAttributes }),
		{name: "dedupe", set: setDedupe},
		{name: "status", set: func(c cursor, t *Tool) {
			t.Status = new(Status)
			decode(c, statusFields(), t.Status)
		}},
		{name: "inputs", set: setInputs},
		policy(choiceField("task", taskModes, func(t *Tool) *TaskMode { return &t.Task })),
		policy(choiceField("fallback", fallbackModes, func(t *Tool) *FallbackMode { return &t.Fallback })),
		policy(durationField("handoffAfter", handoffs, func(t *Tool) *time.Duration { return &t.HandoffAfter })),
		policy(choiceField("result", resultModes, func(t *Tool) *ResultMode { return &t.Result })),
		textField("resultPath", func(t *Tool) *string { return &t.ResultPath }),
		policy(durationField("executionTimeout", workflowTimeouts, func(t *Tool) *time.Duration { return &t.ExecutionTimeout })),
		policy(durationField("runTimeout", workflowTimeouts, func(t *Tool) *time.Duration { return &t.RunTimeout })),
		policy(durationField("taskTimeout", taskTimeouts, func(t *Tool) *time.Duration { return &t.TaskTimeout })),
		policy(field[Tool]{name: "retry", set: func(c cursor, t *Tool) {
			t.Retry = new(Retry)
			decode(c, retryFields(), t.Retry)
		}}),
		policy(field[Tool]{name: "priority", set: func(c cursor, t *Tool) {
			t.Priority = new(Priority)
			decode(c, priorityFields(), t.Priority)
		}}),
		policy(field[Tool]{name: "versioning", set: setVersioning}),
		policy(durationField("retention", retentions, func(t *Tool) *time.Duration { return &t.Retention })),
		policy(durationField("pollInterval", pollIntervals, func(t *Tool) *time.Duration { return &t.PollInterval })),
		policy(durationField("inlineWait", inlineWaits, func(t *Tool) *time.Duration { return &t.InlineWait })),
		policy(choiceField("cancel", cancelModes, func(t *Tool) *CancelMode { return &t.Cancel })),
		{name: "confirm", set: func(c cursor, t *Tool) {
			t.Confirm = new(Confirm)
			decode(c, confirmFields(), t.Confirm)
		}},
		{name: "annotations", set: func(c cursor, t *Tool) {
			t.Annotations = new(Annotations)
			decode(c, annotationFields(), t.Annotations)
		}},
		{name: "icons", set: func(c cursor, t *Tool) {
			for _, item := range c.items() {
				var icon Icon
				decode(item, iconFields(), &icon)
				t.Icons = append(t.Icons, icon)
			}
		}},
	}
}

func confirmFields() []field[Confirm] {
	return []field[Confirm]{
		textField("message", func(f *Confirm) *string { return &f.Message }),
		schemaField("schema", func(f *Confirm) *json.RawMessage { return &f.Schema }),
		textField("argument", func(f *Confirm) *string { return &f.Argument }),
	}
}

func annotationFields() []field[Annotations] {
	return []field[Annotations]{
		boolField("readOnlyHint", func(a *Annotations, hint bool) { a.ReadOnlyHint = &hint }),
		boolField("destructiveHint", func(a *Annotations, hint bool) { a.DestructiveHint = &hint }),
		boolField("idempotentHint", func(a *Annotations, hint bool) { a.IdempotentHint = &hint }),
		boolField("openWorldHint", func(a *Annotations, hint bool) { a.OpenWorldHint = &hint }),
	}
}

func iconFields() []field[Icon] {
	return []field[Icon]{
		textField("src", func(i *Icon) *string { return &i.Src }),
		textField("mimeType", func(i *Icon) *string { return &i.MIMEType }),
		{name: "sizes", set: func(c cursor, i *Icon) { i.Sizes = c.texts() }},
		textField("theme", func(i *Icon) *string { return &i.Theme }),
	}
}

// policyFields are the fields of defaults.
func policyFields() []field[Tool] {
	return slices.DeleteFunc(toolFields(), func(f field[Tool]) bool { return !f.policy })
}

func schemaField[T any](name string, to func(*T) *json.RawMessage) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		if c.is(objectNode, "a schema, which is a mapping") {
			*to(t) = c.node.json()
		}
	}}
}

// valuesField is a mapping of names to any values.
func valuesField(name, what string, to func(*Tool) *map[string]json.RawMessage) field[Tool] {
	return field[Tool]{name: name, set: func(c cursor, t *Tool) {
		if !c.is(objectNode, "a mapping of "+what+" to values") {
			return
		}
		values := map[string]json.RawMessage{}
		for _, m := range c.node.members {
			values[m.key] = m.value.json()
		}
		*to(t) = values
	}}
}

func (c cursor) texts() []string {
	var texts []string
	for _, item := range c.items() {
		if item.is(textNode, "a string") {
			texts = append(texts, item.node.text)
		}
	}
	return texts
}

const durationForm = "write a duration like 90s, 15m, 2h30m or 7d"

var (
	unitless = regexp.MustCompile(`^[+-]?[0-9.]+$`)
	daysForm = regexp.MustCompile(`^([0-9]+)d(.*)$`)
)

// duration reads a Go duration that may start with days, like 7d or 1d12h.
func duration(n *node) (d time.Duration, problem string) {
	if n.kind != textNode && n.kind != numberNode {
		return 0, "expected a duration, found " + n.describe() + "; " + durationForm
	}
	if unitless.MatchString(n.text) {
		return 0, n.text + " has no unit; write " + n.text + "s"
	}
	problem = strconv.Quote(shorten(n.text)) + " is not a duration; " + durationForm
	rest := n.text
	if m := daysForm.FindStringSubmatch(n.text); m != nil {
		days, err := time.ParseDuration(m[1] + "h")
		if err != nil || days > maxDays {
			return 0, problem
		}
		if d, rest = 24*days, m[2]; rest == "" {
			return d, ""
		}
	}
	clock, err := time.ParseDuration(rest)
	if err != nil || d+clock < d && clock > 0 || d > 0 && clock < 0 {
		return 0, problem
	}
	return d + clock, ""
}

// maxDays, counted in hours here, keeps durations within what Go can hold.
const maxDays = 100_000 * time.Hour

// file decodes one catalog file.
type file struct {
	name   string
	read   func(name string) ([]byte, error) // reads a schema file; nil when there are no files
	known  map[string]Workflow
	report *reporter
}

const catalogShape = `a catalog starts with "version: 1" and lists its tools under "tools:"`

// declared is a tool with the place of its name.
type declared struct {
	tool *Tool
	at   position
}

var topFields = []string{"version", "defaults", "tools"}

// extension keys at the top level are free for anchors.
var extension = regexp.MustCompile(`^x-`)

// decode returns the tools of the catalog, good or bad.
func (f *file) decode(root *node) []declared {
	c := cursor{f.report, nil, root}
	if root.kind != objectNode {
		c.fail("expected a mapping, found %s; %s", root.describe(), catalogShape)
		return nil
	}
	f.version(root)
	var defaults Tool
	var broken map[string]bool
	if m := root.member("defaults"); m != nil {
		broken = f.defaults(cursor{f.report, path{m.key}, m.value}, &defaults)
	}
	var tools []declared
	for _, m := range root.members {
		switch {
		case m.key == "tools":
			tools = f.tools(cursor{f.report, path{m.key}, m.value}, defaults, broken)
		case !slices.Contains(topFields, m.key) && !extension.MatchString(m.key):
			f.report.add(m.at, path{m.key}, "%s", wording.Unknown("field", m.key, topFields))
		}
	}
	if root.member("tools") == nil {
		f.report.add(root.at, nil, "tools is missing; %s", catalogShape)
	}
	return tools
}

func (f *file) version(root *node) {
	version := root.get("version")
	switch {
	case version == nil:
		f.report.add(root.at, nil, "version is missing; %s", catalogShape)
	case version.kind != numberNode || version.text != "1":
		cursor{f.report, path{"version"}, version}.fail("expected the number 1, found %s; no other version is known", version.describe())
	}
}

// defaults decodes the policy that all tools of the file start from. It returns the fields that are wrong, so that the
// tools are not blamed for them.
func (f *file) defaults(c cursor, t *Tool) map[string]bool {
	if c.node.kind == objectNode {
		rest := *c.node
		rest.members = nil
		for _, m := range c.node.members {
			if !slices.Contains(names(policyFields()), m.key) && slices.Contains(f.toolNames(), m.key) {
				f.report.add(m.at, c.path.with(m.key), "cannot have a default; write it in each tool")
				continue
			}
			rest.members = append(rest.members, m)
		}
		c.node = &rest
	}
	return decode(c, policyFields(), t)
}

func (f *file) tools(c cursor, defaults Tool, broken map[string]bool) []declared {
	if !c.is(objectNode, "a mapping of tool names to tools") {
		return nil
	}
	var tools []declared
	for _, m := range c.node.members {
		tool := defaults
		tool.Name = m.key
		f.tool(cursor{f.report, c.path.with(m.key), m.value}, m.at, &tool, broken)
		tools = append(tools, declared{&tool, m.at})
	}
	return tools
}

// tool decodes and completes one tool.
func (f *file) tool(c cursor, at position, t *Tool, broken map[string]bool) {
	files := map[string]*node{}
	if c.node.kind != objectNode {
		c.is(objectNode, "a mapping")
		return
	}
	wrong := decode(c, append(toolFields(), f.fileFields(c.node, files)...), t)
	maps.Copy(wrong, broken)
	dropDefaults(c.node, t)
	known, isKnown := f.known[t.Workflow]
	if t.Result == "" {
		t.Result = known.Result
	}
	t.complete(check{skip: wrong, fail: func(p path, format string, args ...any) {
		where, whole := c.node.locate(at, p), c.path.join(p)
		if f.report.marked(whole) {
			return
		}
		if len(p) > 0 {
			name, _ := p[0].(string)
			if schema := files[name]; schema != nil {
				where = schema.locate(schema.at, p[1:])
				whole[len(c.path)] = name + "File"
			}
		}
		f.report.add(where, whole, format, args...)
	}})
	if isKnown && !wrong["with"] {
		f.workflow(known, c, t)
	}
}

// dropDefaults takes back what a tool has from defaults alone and has no use for: a fallback where the task mode leaves
// no choice, and the time of a handoff where there is none.
func dropDefaults(own *node, t *Tool) {
	if own.get("fallback") == nil && (t.Task == TaskRequired || t.Task == TaskNever) {
		t.Fallback = ""
	}
	if own.get("handoffAfter") == nil && t.Fallback != FallbackHandoff {
		t.HandoffAfter = 0
	}
	dropStarting(own, t)
}

// workflow checks a tool's `with` against what is known of its workflow type.
func (f *file) workflow(known Workflow, c cursor, t *Tool) {
	with := c.node.get("with")
	if with == nil {
		with = &node{kind: objectNode, at: c.node.at}
	}
	report := func(p path, message string) {
		f.report.add(with.locate(with.at, p), c.path.with("with").join(p), "%s", message)
	}
	schema, ok := compile(unreported, nil, parseJSON("", known.With, &reporter{}))
	if !ok {
		report(nil, fmt.Sprintf("the schema that this program has for workflow %s is broken", t.Workflow))
		return
	}
	if found := validate(schema, with.value(), with); len(found) > 0 {
		for _, v := range found {
			report(v.where, v.message)
		}
		return
	}
	if known.Check == nil {
		return
	}
	for _, mistake := range known.Check(t.With) {
		report(path(mistake.Path), mistake.Message)
	}
}

// toolNames lists every field of a tool.
func (f *file) toolNames() []string {
	return append(names(toolFields()), names(f.fileFields(&node{}, nil))...)
}

// fileFields are the two fields that name a schema file instead of holding the schema. What they read goes into files
// under the name of the field they stand for.
func (f *file) fileFields(tool *node, files map[string]*node) []field[Tool] {
	return []field[Tool]{
		f.fileField("input", tool, files, func(t *Tool) *json.RawMessage { return &t.InputSchema }),
		f.fileField("output", tool, files, func(t *Tool) *json.RawMessage { return &t.OutputSchema }),
	}
}

func (f *file) fileField(name string, tool *node, files map[string]*node, to func(*Tool) *json.RawMessage) field[Tool] {
	return field[Tool]{name: name + "File", set: func(c cursor, t *Tool) {
		if tool.get(name) != nil {
			c.fail("%s is given too; keep one of the two", name)
			return
		}
		if !c.is(textNode, "the name of a file") {
			return
		}
		if schema := f.schema(c); schema != nil {
			files[name] = schema
			*to(t) = schema.json()
		}
	}}
}

// schema reads a schema file, JSON or YAML by its name.
func (f *file) schema(c cursor) *node {
	if f.read == nil {
		c.fail("this catalog is not a file, so it cannot name others; write the schema here")
		return nil
	}
	name := relativeTo(f.name, c.node.text)
	data, err := f.read(name)
	if err != nil {
		c.fail("%v", err)
		return nil
	}
	var found reporter // a schema file has paths of its own
	var schema *node
	if isYAML(name) {
		schema = parseYAML(name, data, "a JSON Schema belongs here", &found)
	} else {
		schema = parseJSON(name, data, &found)
	}
	if schema != nil && schema.kind != objectNode {
		found.add(schema.at, nil, "expected a schema, which is a mapping, found %s", schema.describe())
	}
	if len(found.errors) > 0 {
		c.report.mark(c.path)
		c.report.take(found.errors)
		return nil
	}
	return schema
}
