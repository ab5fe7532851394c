package catalog

import (
	"encoding/json"
	"errors"
	"sync"

	"taskbridge/mcpbridge/internal/expression"
)

// The variables of expressions. Those of a start are the call's arguments; those of a running workflow are [Facts]. The
// payload of an accepted answer also has the answer.
const (
	argsVariable       = "args"
	queryVariable      = "query"
	memoVariable       = "memo"
	searchVariable     = "search"
	activitiesVariable = "activities"
	answerVariable     = "answer"
)

// templates compiles what one place of a tool says, and reports what is wrong with it.
type templates struct {
	check
	scope *expression.Scope
	hints map[string]string // by variables that there are elsewhere, but not here
}

const onlyRunning = "is known of running workflows only; before the start there is args, the call's arguments"

// atStart is for what is filled in when a call starts a workflow.
func atStart(c check, args expression.Shape) templates {
	return templates{c, expression.NewScope(map[string]expression.Shape{argsVariable: args}), map[string]string{
		queryVariable: "query " + onlyRunning, memoVariable: "memo " + onlyRunning, searchVariable: "search " + onlyRunning,
		activitiesVariable: "activities " + onlyRunning,
	}}
}

// The scopes of running workflows are the same everywhere, and take time to make.
var (
	ofRunning = sync.OnceValue(func() *expression.Scope { return expression.NewScope(runningVariables(false)) })
	ofQueried = sync.OnceValue(func() *expression.Scope { return expression.NewScope(runningVariables(true)) })
)

func runningVariables(queried bool) map[string]expression.Shape {
	variables := map[string]expression.Shape{memoVariable: nil, searchVariable: nil, activitiesVariable: nil}
	if queried {
		variables[queryVariable] = nil
	}
	return variables
}

// whileRunning is for what is asked about a running workflow, of which a query may be asked.
func whileRunning(c check, queried bool) templates {
	scope := ofRunning()
	if queried {
		scope = ofQueried()
	}
	return templates{c, scope, map[string]string{
		argsVariable:   `the arguments of the call are not known any more; keep the ones needed in the tool's memo, and write memo.NAME`,
		queryVariable:  `there is no query here; name the one to ask with "query: NAME" beside this`,
		answerVariable: "only the payload of accept has an answer",
	}}
}

// withAnswer adds the accepted form.
func (t templates) withAnswer(queried bool, form expression.Shape) templates {
	variables := runningVariables(queried)
	variables[answerVariable] = form
	t.scope = expression.NewScope(variables)
	return t
}

func (t templates) report(at path, err error) {
	var problem *expression.Problem
	if !errors.As(err, &problem) {
		t.fail(at, "%v", err)
		return
	}
	message := problem.Message
	if hint := t.hints[problem.Unknown]; hint != "" {
		message = hint
	}
	t.fail(at.join(problem.Path), "%s", message)
}

// The compiled forms are nil if something is wrong.

func (t templates) text(at path, text string) *expression.Text {
	compiled, err := t.scope.Text(text)
	return reported(t, at, compiled, err)
}

func (t templates) json(at path, data json.RawMessage) *expression.Template {
	compiled, err := t.scope.Template(data)
	return reported(t, at, compiled, err)
}

func (t templates) condition(at path, source string) *expression.Expression {
	compiled, err := t.scope.Condition(source)
	return reported(t, at, compiled, err)
}

func (t templates) number(at path, source string) *expression.Expression {
	compiled, err := t.scope.Number(source)
	return reported(t, at, compiled, err)
}

func reported[C any](t templates, at path, compiled *C, err error) *C {
	if err != nil {
		t.report(at, err)
		return nil
	}
	return compiled
}

// shapeOf is what a schema says of the members of values; nil if they may have others.
func shapeOf(schema *node) expression.Shape {
	if schema == nil || composed(schema) || schema.get("patternProperties") != nil {
		return nil
	}
	if others := schema.get("additionalProperties"); others == nil || others.kind != boolNode || others.text != "false" {
		return nil
	}
	shape := expression.Shape{}
	for _, m := range schema.get("properties").entries() {
		shape[m.key] = shapeOf(m.value)
	}
	return shape
}

// complete adds what a schema declares and a value lacks: its default, else null. So templates may name it.
func complete(value, schema *node) json.RawMessage {
	return fillMissing(value, schema, json.RawMessage("null"))
}

// withDefaults adds the defaults of what a schema declares and a value lacks.
func withDefaults(value, schema *node) json.RawMessage { return fillMissing(value, schema, nil) }

func fillMissing(value, schema *node, otherwise json.RawMessage) json.RawMessage {
	var members []argument
	for _, m := range value.members {
		members = append(members, argument{m.key, m.rawKey, m.value.raw})
	}
	for _, m := range schema.get("properties").entries() {
		missing := otherwise
		if standard := m.value.get("default"); standard != nil {
			missing = standard.json()
		}
		if value.get(m.key) == nil && missing != nil {
			members = append(members, newArgument(m.key, missing))
		}
	}
	return object(members)
}
