package catalog

import (
	"fmt"
	"regexp"
	"strings"

	"taskbridge/mcpbridge/internal/expression"
)

// Attach makes a tool's calls follow a workflow that somebody else has started, instead of starting one.
type Attach struct {
	// WorkflowID is a template of the workflow's ID, such as "backfill-${args.date}". It begins with some text of its own,
	// and what arguments fill in has none but letters, digits and . _ ~ @ + -. A * at its end stands for anything; the
	// newest workflow that matches is taken.
	WorkflowID string
	// Answer and Cancel allow callers to answer questions and to cancel; without them they only follow.
	Answer, Cancel bool

	id      *expression.Text // of what goes before the *
	newest  bool             // there is a *
	pattern *regexp.Regexp
}

// anything at the end of a workflow ID.
const anything = "*"

// callersPrefix begins the IDs of workflows that are tasks of callers.
const callersPrefix = "mcp:"

const filledIn = `[A-Za-z0-9._~@+-]+`

var printable = regexp.MustCompile(`^[ -~]*$`)

// complete checks and compiles the pattern.
func (a *Attach) complete(c check, at templates) {
	where := path{"attach", "workflowId"}
	if a.WorkflowID == "" {
		c.fail(where, `is missing; write the ID of the workflow to follow, such as "backfill-${args.date}"`)
		return
	}
	fixed, newest := strings.CutSuffix(a.WorkflowID, anything)
	a.newest = newest
	if a.id = at.text(where, fixed); a.id == nil {
		return
	}
	if problem := a.problem(); problem != "" {
		c.fail(where, "%s", problem)
		return
	}
	a.pattern = a.compile()
}

// problem is what is wrong with the parts of the template, or "".
func (a *Attach) problem() string {
	if len(a.id.Parts) == 0 || a.id.Parts[0].Expression != nil {
		return `would let callers reach any workflow; begin it with text of its own, as in "backfill-${args.date}"`
	}
	if strings.HasPrefix(a.id.Parts[0].Literal, callersPrefix) {
		return fmt.Sprintf("workflows whose ID begins with %q are tasks of callers, and nobody else's to follow", callersPrefix)
	}
	for _, part := range a.id.Parts {
		switch {
		case strings.Contains(part.Literal, anything):
			return "a * can stand only at its end"
		case !printable.MatchString(part.Literal):
			return fmt.Sprintf("%q has other than printable ASCII characters, which Temporal does not take in IDs", part.Literal)
		}
	}
	return ""
}

func (a *Attach) compile() *regexp.Regexp {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, part := range a.id.Parts {
		if part.Expression != nil {
			pattern.WriteString(filledIn)
		} else {
			pattern.WriteString(regexp.QuoteMeta(part.Literal))
		}
	}
	if a.newest {
		pattern.WriteString(".*")
	}
	return regexp.MustCompile(pattern.String() + "$")
}

// Grants reports whether a workflow ID is one that the pattern can make.
func (a *Attach) Grants(workflowID string) bool {
	return a.pattern.MatchString(workflowID)
}

// fill makes the workflow ID of a call.
func (a *Attach) fill(values *expression.Values) (string, error) {
	filled, err := a.id.String(values, func(e *expression.Expression, filled string) error {
		if filled == "" || unfit.MatchString(filled) {
			return fmt.Errorf("%s is %q, and this part of a workflow ID is one or more %s", e, shorten(filled), fitCharacters)
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("attach.workflowId: %w", err)
	}
	return filled, nil
}

// grant is something that callers may do to a workflow they did not start.
type grant string

var grants = choice[grant]{"something to allow", []grant{"answer", "cancel"}}

func attachFields() []field[Attach] {
	return []field[Attach]{
		textField("workflowId", func(a *Attach) *string { return &a.WorkflowID }),
		{name: "allow", set: func(c cursor, a *Attach) {
			for _, item := range c.items() {
				var allowed grant
				choiceField("", grants, func(g *grant) *grant { return g }).set(item, &allowed)
				a.Answer = a.Answer || allowed == "answer"
				a.Cancel = a.Cancel || allowed == "cancel"
			}
		}},
	}
}

// starting are the fields that only tools that start workflows have.
var starting = []struct {
	name  string
	given func(*Tool) bool
	clear func(*Tool) // of those that may come from defaults
}{
	{"workflow", func(t *Tool) bool { return t.Workflow != "" }, nil},
	{"taskQueue", func(t *Tool) bool { return t.TaskQueue != "" }, func(t *Tool) { t.TaskQueue = "" }},
	{"arguments", func(t *Tool) bool { return t.Arguments != "" }, nil},
	{"positional", func(t *Tool) bool { return len(t.Positional) > 0 }, nil},
	{"with", func(t *Tool) bool { return len(t.With) > 0 }, nil},
	{"idSuffix", func(t *Tool) bool { return t.IDSuffix != "" }, nil},
	{"memo", func(t *Tool) bool { return len(t.Memo) > 0 }, nil},
	{"searchAttributes", func(t *Tool) bool { return len(t.SearchAttributes) > 0 }, nil},
	{"dedupe", func(t *Tool) bool { return t.Dedupe != nil }, nil},
	{"confirm", func(t *Tool) bool { return t.Confirm != nil }, nil},
	{"executionTimeout", func(t *Tool) bool { return t.ExecutionTimeout != 0 }, func(t *Tool) { t.ExecutionTimeout = 0 }},
	{"runTimeout", func(t *Tool) bool { return t.RunTimeout != 0 }, func(t *Tool) { t.RunTimeout = 0 }},
	{"taskTimeout", func(t *Tool) bool { return t.TaskTimeout != 0 }, func(t *Tool) { t.TaskTimeout = 0 }},
	{"retry", func(t *Tool) bool { return t.Retry != nil }, func(t *Tool) { t.Retry = nil }},
	{"priority", func(t *Tool) bool { return t.Priority != nil }, func(t *Tool) { t.Priority = nil }},
	{"versioning", func(t *Tool) bool { return t.Versioning != nil }, func(t *Tool) { t.Versioning = nil }},
	{"retention", func(t *Tool) bool { return t.Retention != 0 }, func(t *Tool) { t.Retention = 0 }},
}

// checkFollowing checks, before there are defaults, that a tool that attaches says nothing about starts, and nothing about
// what its callers may not do.
func (t *Tool) checkFollowing(c check) {
	if t.Attach == nil {
		return
	}
	for _, f := range starting {
		if f.given(t) {
			c.fail(path{f.name}, "has no meaning with attach, which follows a workflow that is there; remove one of the two")
		}
	}
	if t.Cancel != "" && !t.Attach.Cancel {
		c.fail(path{"cancel"}, `callers may not cancel; write "allow: [cancel]" in attach, or remove this`)
	}
	if len(t.Inputs) > 0 && !t.Attach.Answer {
		c.fail(path{"inputs"}, `callers may not answer; write "allow: [answer]" in attach, or remove this`)
	}
	for _, input := range t.Inputs {
		if input.Decline.Cancel && !t.Attach.Cancel {
			c.fail(path{"inputs", input.Name, "decline"}, `callers may not cancel; write "allow: [answer, cancel]" in attach, or name what else a decline does`)
		}
	}
}

// dropStarting takes from a tool that attaches what it has from defaults alone and has no use for.
func dropStarting(own *node, t *Tool) {
	if t.Attach == nil {
		return
	}
	for _, f := range starting {
		if f.clear != nil && own.get(f.name) == nil {
			f.clear(t)
		}
	}
	if own.get("cancel") == nil && !t.Attach.Cancel {
		t.Cancel = ""
	}
}
