package catalog

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"taskbridge/mcpbridge/internal/expression"
	"taskbridge/mcpbridge/internal/wording"
	"taskbridge/signals"
)

// Facts are what conditions and templates about a running workflow may ask: the variables query, memo, search and
// activities of expressions.
type Facts struct {
	// Query is the answer to the query that the entry names. It is nil, and the variable null, if there is none.
	Query json.RawMessage
	// Memo and Search are the fields of memo and search attributes.
	Memo, Search map[string]json.RawMessage
	Activities   []Activity
}

// Activity is one that is pending.
type Activity struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Attempt int32  `json:"attempt"` // counted from 1
	Started bool   `json:"started"` // a worker has taken it
}

// variables are the facts by the names that expressions have for them.
func (f Facts) variables() map[string]any {
	return map[string]any{
		queryVariable:      f.Query,
		memoVariable:       orEmpty(f.Memo),
		searchVariable:     orEmpty(f.Search),
		activitiesVariable: append([]Activity{}, f.Activities...),
	}
}

func orEmpty(fields map[string]json.RawMessage) map[string]json.RawMessage {
	if fields == nil {
		return map[string]json.RawMessage{}
	}
	return fields
}

// Status tells how far a workflow has come that does not follow the contract.
type Status struct {
	Query string // name of a query without arguments; "" asks none
	// Message is a template of the status message. By default it is the answer to the query: as it is if it is a string,
	// else its JSON.
	Message string
	// Done and Total are expressions for a count of steps; "" for none. Total needs Done.
	Done, Total string

	message     *expression.Text
	done, total *expression.Expression // nil if there are none
}

// Input is a question that is put to the caller when a workflow that does not follow the contract waits for a decision.
type Input struct {
	Name  string // begins the keys of its input requests
	Query string // name of a query without arguments; "" asks none
	// When is the condition under which the question is open. It may be empty if Accept completes an activity: then the
	// question is open while that is started.
	When    string
	Message string          // a template
	Schema  json.RawMessage // MCP elicitation form; an empty form by default
	Once    bool            // the question is asked at most once in a run, whatever its condition says later
	Accept  Effect
	Decline Effect // also of an answer that is neither accepted nor declined

	when    *expression.Expression // nil for always
	message *expression.Text
	form    *node              // of Schema
	answers *jsonschema.Schema // of accepted forms
}

// Effect is what an answer does to the workflow: one of Signal, Update, Activity and Cancel.
type Effect struct {
	Signal   string // name of a signal to send
	Update   string // name of an update to send; if the workflow rejects it, so is the answer
	Activity string // type of a started activity to complete
	Cancel   bool   // cancels the workflow
	// Payload is a template of the one argument of the signal or update, or of the activity's result, any JSON value.
	// Without it that is the accepted form with its defaults, or nothing at all if the form is empty or was not accepted.
	Payload json.RawMessage

	payload *expression.Template // nil without Payload
}

// completeUnchanged checks and compiles what is said of a workflow that does not follow the contract.
func (t *Tool) completeUnchanged(c check) {
	if t.Status != nil {
		status := *t.Status
		status.complete(c)
		t.Status = &status
	}
	t.Inputs = slices.Clone(t.Inputs)
	for i := range t.Inputs {
		t.Inputs[i].complete(c)
		if slices.ContainsFunc(t.Inputs[:i], func(other Input) bool { return other.Name == t.Inputs[i].Name }) {
			c.fail(path{"inputs", t.Inputs[i].Name}, "two questions have this name; choose another")
		}
	}
}

func (s *Status) complete(c check) {
	at := whileRunning(c, s.Query != "")
	s.message, s.done, s.total = nil, nil, nil
	text := s.Message
	if text == "" && s.Query != "" {
		text = "${query == null ? '' : query}"
	}
	s.message = at.text(path{"status", "message"}, text)
	if s.Done != "" {
		s.done = at.number(path{"status", "done"}, s.Done)
	}
	if s.Total != "" {
		s.total = at.number(path{"status", "total"}, s.Total)
	}
	switch {
	case s.Total != "" && s.Done == "":
		c.fail(path{"status", "total"}, "needs done beside it, the number of steps that are done")
	case s.Query == "" && s.Message == "" && s.Done == "":
		c.fail(path{"status"}, "says nothing; name a query that the workflow answers, or write a message")
	}
}

// inputName keeps the keys of input requests, and what people type to answer them, simple.
var inputName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,63}$`)

func (i *Input) complete(c check) {
	root := path{"inputs", i.Name}
	at := whileRunning(c, i.Query != "")
	if !inputName.MatchString(i.Name) {
		c.fail(root, "%q is not a name for a question; use a letter, then letters, digits, _ and -, 64 at most", shorten(i.Name))
	}
	i.when, i.message = nil, nil
	if i.When != "" {
		i.when = at.condition(root.with("when"), i.When)
	} else if i.Accept.Activity == "" {
		c.fail(root.with("when"), `is missing; write the condition under which the workflow waits, such as "query.state == 'waiting'"`)
	}
	if strings.TrimSpace(i.Message) == "" {
		c.fail(root.with("message"), "is missing; write the question to ask")
	}
	i.message = at.text(root.with("message"), i.Message)
	i.answers, i.form = completeForm(c, root.with("schema"), &i.Schema)
	i.checkActivities(c, root)
	i.Accept.complete(at.withAnswer(i.Query != "", formShape(i.form)), root.with("accept"), "an accepted answer")
	at.hints[answerVariable] = "an answer that is not accepted has no form"
	i.Decline.complete(at, root.with("decline"), "an answer that is not accepted")
}

func formShape(form *node) expression.Shape {
	if form == nil {
		return nil
	}
	closed := *form
	closeObject(&closed)
	return shapeOf(&closed)
}

// checkActivities checks that a question is about one type of activity, if about any.
func (i *Input) checkActivities(c check, at path) {
	accepted, declined := i.Accept.Activity, i.Decline.Activity
	switch {
	case declined != "" && accepted == "":
		c.fail(at.join(path{"decline", "activity"}), "which one is meant is known only if accept completes it as well")
	case declined != "" && declined != accepted:
		c.fail(at.join(path{"decline", "activity"}), "accept completes %q; a question is about one activity", accepted)
	case i.Once && accepted != "":
		c.fail(at.with("once"), "has no meaning here: each activity is asked about once; remove it")
	}
}

// complete checks and compiles what an answer does; which names it.
func (e *Effect) complete(at templates, where path, which string) {
	var named []string
	for _, kind := range []struct{ name, value string }{
		{"signal", e.Signal}, {"update", e.Update}, {"activity", e.Activity},
	} {
		if kind.value != "" {
			named = append(named, kind.name)
		}
	}
	if e.Cancel {
		named = append(named, "cancel")
	}
	switch {
	case len(named) == 0:
		at.fail(where, "does nothing; say what %s does: name a signal or an update to send, or an activity to complete%s", which, orCancel(where))
	case len(named) > 1:
		at.fail(where, "%s do not go together; an answer does one thing", wording.List(named, "and"))
	case e.Cancel && e.Payload != nil:
		at.fail(where.with("payload"), "a cancel carries nothing; remove it")
	}
	e.payload = nil
	if e.Payload != nil && readJSON(at.check, where.with("payload"), e.Payload) != nil {
		e.payload = at.json(where.with("payload"), e.Payload)
	}
}

func orCancel(where path) string {
	if where[len(where)-1] == "decline" {
		return `, or write "decline: cancel"`
	}
	return ""
}

// Queries are the names of the queries that status and inputs ask, each once.
func (t *Tool) Queries() []string {
	names := map[string]bool{}
	if t.Status != nil {
		names[t.Status.Query] = true
	}
	for _, input := range t.Inputs {
		names[input.Query] = true
	}
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// Say is the status message and the progress, nil if none is declared.
func (s *Status) Say(facts Facts) (message string, progress *signals.Progress, err error) {
	values := expression.NewValues(facts.variables())
	if message, err = s.message.String(values, nil); err != nil {
		return "", nil, fmt.Errorf("message: %w", err)
	}
	if s.done == nil {
		return message, nil, nil
	}
	progress = new(signals.Progress)
	if progress.Done, err = s.done.Float(values); err != nil {
		return message, nil, fmt.Errorf("done: %w", err)
	}
	if s.total == nil {
		return message, progress, nil
	}
	if progress.Total, err = s.total.Float(values); err != nil {
		return message, nil, fmt.Errorf("total: %w", err)
	}
	return message, progress, nil
}

// Asks reports whether the question is open.
func (i *Input) Asks(facts Facts) (bool, error) {
	if i.when == nil {
		return true, nil
	}
	return i.when.True(expression.NewValues(facts.variables()))
}

// Question is the request to the client.
func (i *Input) Question(facts Facts) (signals.InputRequest, error) {
	message, err := i.message.String(expression.NewValues(facts.variables()), nil)
	if err != nil {
		return signals.InputRequest{}, fmt.Errorf("message: %w", err)
	}
	params, err := json.Marshal(struct {
		Mode            string          `json:"mode"`
		Message         string          `json:"message"`
		RequestedSchema json.RawMessage `json:"requestedSchema"`
	}{"form", message, i.Schema})
	return signals.InputRequest{Method: signals.MethodElicit, Params: params}, err
}

// Effect is what an answer with the given action does, and the payload that goes with it, nil for none; content is the
// form's, if accepted. The error is an *ArgumentError if the content does not fit the form.
func (i *Input) Effect(action string, content json.RawMessage, facts Facts) (Effect, json.RawMessage, error) {
	variables := facts.variables()
	if action != "accept" {
		payload, err := i.Decline.fill(variables, nil)
		return i.Decline, payload, err
	}
	root, found := parseArguments(content)
	if root == nil || len(found) > 0 {
		return Effect{}, nil, argumentError(found)
	}
	if err := argumentError(ofForm(validate(i.answers, root.value(), root))); err != nil {
		return Effect{}, nil, err
	}
	variables[answerVariable] = complete(root, i.form)
	var whole json.RawMessage
	if len(i.form.get("properties").entries()) > 0 {
		whole = withDefaults(root, i.form)
	}
	payload, err := i.Accept.fill(variables, whole)
	return i.Accept, payload, err
}

// fill is the payload; standard is the one of an effect that names none.
func (e *Effect) fill(variables map[string]any, standard json.RawMessage) (json.RawMessage, error) {
	if e.payload == nil {
		return standard, nil
	}
	payload, err := e.payload.JSON(expression.NewValues(variables))
	if err != nil {
		return nil, fmt.Errorf("payload: %w", err)
	}
	return payload, nil
}

func statusFields() []field[Status] {
	return []field[Status]{
		textField("query", func(s *Status) *string { return &s.Query }),
		textField("message", func(s *Status) *string { return &s.Message }),
		expressionField("done", func(s *Status) *string { return &s.Done }),
		expressionField("total", func(s *Status) *string { return &s.Total }),
	}
}

func inputFields() []field[Input] {
	return []field[Input]{
		textField("query", func(i *Input) *string { return &i.Query }),
		expressionField("when", func(i *Input) *string { return &i.When }),
		textField("message", func(i *Input) *string { return &i.Message }),
		schemaField("schema", func(i *Input) *json.RawMessage { return &i.Schema }),
		boolField("once", func(i *Input, yes bool) { i.Once = yes }),
		{name: "accept", set: func(c cursor, i *Input) {
			if c.is(objectNode, "a mapping with a signal, an update or an activity") {
				decode(c, effectFields(), &i.Accept)
			}
		}},
		{name: "decline", set: setDecline},
	}
}

func effectFields() []field[Effect] {
	return []field[Effect]{
		textField("signal", func(e *Effect) *string { return &e.Signal }),
		textField("update", func(e *Effect) *string { return &e.Update }),
		textField("activity", func(e *Effect) *string { return &e.Activity }),
		{name: "payload", set: func(c cursor, e *Effect) { e.Payload = c.node.json() }},
	}
}

func setDecline(c cursor, i *Input) {
	switch {
	case c.node.is("cancel"):
		i.Decline.Cancel = true
	case c.node.kind == objectNode:
		decode(c, effectFields(), &i.Decline)
	default:
		c.fail(`expected cancel, or a mapping with a signal, an update or an activity, found %s`, c.node.describe())
	}
}

// expressionField is that of an expression. YAML reads some of them, such as true and 5, as other than strings.
func expressionField[T any](name string, to func(*T) *string) field[T] {
	text := textField(name, to)
	return field[T]{name: name, set: func(c cursor, t *T) {
		if c.node.kind == boolNode || c.node.kind == numberNode {
			*to(t) = c.node.text
			return
		}
		text.set(c, t)
	}}
}

func setInputs(c cursor, t *Tool) {
	if !c.is(objectNode, "a mapping of names to questions") {
		return
	}
	for _, m := range c.node.members {
		input := Input{Name: m.key}
		decode(cursor{c.report, c.path.with(m.key), m.value}, inputFields(), &input)
		t.Inputs = append(t.Inputs, input)
	}
}
