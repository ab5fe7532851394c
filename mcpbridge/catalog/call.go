package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"taskbridge/mcpbridge/internal/expression"
)

// Versioning overrides the versioning behaviour of a workflow (Temporal Worker Versioning).
type Versioning struct {
	AutoUpgrade bool
	// Deployment and BuildID name the version that workflows are pinned to, if AutoUpgrade is not set.
	Deployment, BuildID string
}

// DedupeMode says what makes two calls of a caller the same.
type DedupeMode string

const (
	DedupeArguments DedupeMode = "arguments" // the same arguments
	DedupeKey       DedupeMode = "key"       // the same [IdempotencyKey]; calls without one are all different
)

// IdempotencyKey is the member of a call's _meta that names it for DedupeKey: a string of 1 to 255 bytes.
const IdempotencyKey = "taskbridge/idempotencyKey"

// Dedupe makes a caller's repeated call return the task of the first one.
type Dedupe struct {
	By DedupeMode
	// AfterCompletion also returns one that has completed, for as long as it can be read. One that did not complete
	// is started again.
	AfterCompletion bool
}

// Call is what a call of a tool becomes.
type Call struct {
	// Arguments of the workflow.
	Arguments []json.RawMessage
	// IDSuffix is what the task ID ends with, "" for nothing.
	IDSuffix string
	// Memo and SearchAttributes are the workflow's own, by name.
	Memo, SearchAttributes map[string]json.RawMessage
	// WorkflowID is the one to attach to, of which Newest says that it is only how the ID begins.
	WorkflowID string
	Newest     bool
}

// maxSuffix is how long the suffix of a task ID can be, in bytes.
const maxSuffix = 100

// reservedMemo begins the names of the memo fields that are taskbridge's own.
const reservedMemo = "mcp."

// completeCall checks and compiles what a call becomes, but for the arguments.
func (t *Tool) completeCall(c check, input *node) {
	t.schema = input
	at := atStart(c, shapeOf(input))
	if t.Versioning != nil && !c.skip["versioning"] {
		t.Versioning.check(c)
	}
	t.checkDedupe(c)
	t.completeSuffix(c, at)
	t.memo = t.completeMemo(c, at)
	t.search = t.completeSearch(c, at)
	if t.Attach != nil {
		t.Attach.complete(c, at)
	}
}

func (v *Versioning) check(c check) {
	at := path{"versioning"}
	switch {
	case v.AutoUpgrade && (v.Deployment != "" || v.BuildID != ""):
		c.fail(at, "a workflow is either upgraded or pinned to a version; keep one of the two")
	case !v.AutoUpgrade && v.Deployment == "":
		c.fail(at.with("deployment"), `is missing; name the worker deployment, or write "versioning: autoUpgrade"`)
	case !v.AutoUpgrade && v.BuildID == "":
		c.fail(at.with("buildId"), "is missing; name the build ID that workflows are pinned to")
	}
}

func (t *Tool) checkDedupe(c check) {
	if t.Dedupe == nil || c.skip["dedupe"] {
		return
	}
	at := path{"dedupe"}
	if t.Dedupe.By == "" {
		c.fail(at.with("by"), "is missing; say what makes two calls the same: arguments or key")
	} else if problem := dedupeModes.check(t.Dedupe.By); problem != "" {
		c.fail(at.with("by"), "%s", problem)
	}
	if t.Confirm != nil {
		c.fail(at, "cannot go with confirm, which asks about each call; remove one of the two")
	}
	if t.IDSuffix != "" {
		c.fail(path{"idSuffix"}, "cannot go with dedupe, which makes task IDs of its own; remove one of the two")
	}
}

// unfit is what cannot be in a part of an ID that a caller fills in: what separates its parts, above all.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._~@+-]+`)

const fitCharacters = "letters, digits and . _ ~ @ + -"

func (t *Tool) completeSuffix(c check, at templates) {
	t.idSuffix = nil
	if t.IDSuffix == "" || c.skip["idSuffix"] {
		return
	}
	where := path{"idSuffix"}
	t.idSuffix = at.text(where, t.IDSuffix)
	if t.idSuffix == nil {
		return
	}
	for _, part := range t.idSuffix.Parts {
		if found := unfit.FindString(part.Literal); found != "" {
			c.fail(where, "%q cannot be in it; use %s", found, fitCharacters)
		}
	}
}

func (t *Tool) completeMemo(c check, at templates) map[string]*expression.Template {
	compiled := map[string]*expression.Template{}
	for _, name := range slices.Sorted(maps.Keys(t.Memo)) {
		where := path{"memo", name}
		switch {
		case name == "":
			c.fail(where, "a memo field needs a name")
		case strings.HasPrefix(name, reservedMemo):
			c.fail(where, "names that begin with %q are taskbridge's own; choose another", reservedMemo)
		case readJSON(c, where, t.Memo[name]) != nil:
			compiled[name] = at.json(where, t.Memo[name])
		}
	}
	return compiled
}

func (t *Tool) completeSearch(c check, at templates) map[string]*expression.Template {
	compiled := map[string]*expression.Template{}
	for _, name := range slices.Sorted(maps.Keys(t.SearchAttributes)) {
		where := path{"searchAttributes", name}
		if name == "" {
			c.fail(where, "a search attribute needs a name")
			continue
		}
		value := readJSON(c, where, t.SearchAttributes[name])
		if value == nil {
			continue
		}
		if problem := searchProblem(value); problem != "" {
			c.fail(where, "%s", problem)
			continue
		}
		compiled[name] = at.json(where, t.SearchAttributes[name])
	}
	return compiled
}

// searchProblem is what keeps a value from being that of a search attribute, or "".
func searchProblem(value *node) string {
	const right = "a search attribute is a string, a number, true or false, or a list of strings"
	switch value.kind {
	case objectNode, nullNode:
		return right + ", found " + value.describe()
	case listNode:
		for _, item := range value.items {
			if item.kind != textNode {
				return right + ", found a list with " + item.describe()
			}
		}
	}
	return ""
}

// Resolve makes what a call becomes from validated arguments and the content of the accepted confirmation, as
// [Tool.WorkflowArguments] does; the error also says which template has no value for these arguments.
func (t *Tool) Resolve(args, confirmed json.RawMessage) (Call, error) {
	if t.Attach == nil {
		return t.resolveStart(args, confirmed)
	}
	values, err := t.values(args)
	if err != nil {
		return Call{}, err
	}
	workflowID, err := t.Attach.fill(values)
	return Call{WorkflowID: workflowID, Newest: t.Attach.newest}, err
}

func (t *Tool) resolveStart(args, confirmed json.RawMessage) (Call, error) {
	arguments, err := t.WorkflowArguments(args, confirmed)
	if err != nil {
		return Call{}, err
	}
	call := Call{Arguments: arguments}
	if t.idSuffix == nil && len(t.memo) == 0 && len(t.search) == 0 {
		return call, nil
	}
	values, err := t.values(args)
	if err != nil {
		return Call{}, err
	}
	if call.IDSuffix, err = t.suffix(values); err != nil {
		return Call{}, err
	}
	if call.Memo, err = fillAll("memo", t.memo, values); err != nil {
		return Call{}, err
	}
	call.SearchAttributes, err = fillAll("searchAttributes", t.search, values)
	return call, err
}

// values are the variables of a start.
func (t *Tool) values(args json.RawMessage) (*expression.Values, error) {
	client, err := parseObject("arguments", args)
	if err != nil {
		return nil, err
	}
	return expression.NewValues(map[string]any{argsVariable: complete(client, t.schema)}), nil
}

// suffix replaces what cannot be in a task ID: it is there for people, and not worth a call.
func (t *Tool) suffix(values *expression.Values) (string, error) {
	if t.idSuffix == nil {
		return "", nil
	}
	filled, err := t.idSuffix.String(values, nil)
	if err != nil {
		return "", fmt.Errorf("idSuffix: %w", err)
	}
	suffix := unfit.ReplaceAllString(filled, "-")
	return strings.Trim(suffix[:min(len(suffix), maxSuffix)], "-"), nil
}

func fillAll(field string, compiled map[string]*expression.Template, values *expression.Values) (map[string]json.RawMessage, error) {
	filled := make(map[string]json.RawMessage, len(compiled))
	for _, name := range slices.Sorted(maps.Keys(compiled)) {
		value, err := compiled[name].JSON(values)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path{field, name}, err)
		}
		filled[name] = value
	}
	return filled, nil
}

func dedupeFields() []field[Dedupe] {
	return []field[Dedupe]{
		choiceField("by", dedupeModes, func(d *Dedupe) *DedupeMode { return &d.By }),
		boolField("afterCompletion", func(d *Dedupe, yes bool) { d.AfterCompletion = yes }),
	}
}

// setDedupe reads the long form or, of a string, the short one.
func setDedupe(c cursor, t *Tool) {
	t.Dedupe = new(Dedupe)
	if c.node.kind != objectNode {
		choiceField("", dedupeModes, func(d *Dedupe) *DedupeMode { return &d.By }).set(c, t.Dedupe)
		return
	}
	decode(c, dedupeFields(), t.Dedupe)
}

func versioningFields() []field[Versioning] {
	return []field[Versioning]{
		textField("deployment", func(v *Versioning) *string { return &v.Deployment }),
		textField("buildId", func(v *Versioning) *string { return &v.BuildID }),
	}
}

const autoUpgrade = "autoUpgrade"

func setVersioning(c cursor, t *Tool) {
	t.Versioning = new(Versioning)
	switch {
	case c.node.is(autoUpgrade):
		t.Versioning.AutoUpgrade = true
	case c.node.kind == objectNode:
		decode(c, versioningFields(), t.Versioning)
	default:
		c.fail("expected autoUpgrade, or a mapping with deployment and buildId, found %s", c.node.describe())
	}
}
