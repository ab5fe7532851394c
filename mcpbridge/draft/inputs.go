package draft

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// writeStatus suggests a query that may tell how far the workflow is.
func (e *entry) writeStatus() {
	if !e.defined {
		e.comment("No worker told which queries, signals and updates there are. Start one and draft again to see them here.")
	}
	if len(e.queries) == 0 {
		return
	}
	e.comment("The status message can be the answer to a query. There are: " + printable(strings.Join(e.queries, ", ")) + ".")
	status := mapping()
	put(status, "query", text(e.queries[0]))
	e.suggest("status", status)
}

// writeInputs suggests a question for each way by which something can come in.
func (e *entry) writeInputs() {
	if len(e.ways) == 0 {
		return
	}
	inputs := mapping()
	for _, w := range e.ways {
		put(inputs, free(inputs, cmp.Or(snake(w.name), string(w.kind))), e.question(w))
	}
	e.comment("While it runs, others can tell it the following. These questions ask the caller instead.")
	e.suggest("inputs", inputs)
}

// free is a name that the mapping does not have: the wanted one, or that with a number.
func free(m *yaml.Node, wanted string) string {
	name := wanted
	for i := 2; slices.ContainsFunc(m.Content, func(n *yaml.Node) bool { return n.Value == name }); i++ {
		name = fmt.Sprintf("%s_%d", wanted, i)
	}
	return name
}

// question is what an accepted form sends by the given way.
func (e *entry) question(w *way) *yaml.Node {
	f, remark := formOf(w)
	question := mapping()
	if w.kind != activity { // which is open while the activity is started
		e.addCondition(question)
	}
	put(question, "message", text(fmt.Sprintf("What should the answer to %q be?", w.name)))
	if len(f.shape.properties) > 0 {
		put(question, "schema", f.shape.schema(e.Examples))
	}
	accept := mapping()
	accept.Style = yaml.FlowStyle
	put(accept, string(w.kind), text(w.name))
	if f.payload != "" {
		put(accept, "payload", text(f.payload))
	}
	accept.LineComment = remark
	put(question, "accept", accept)
	put(question, "decline", text("cancel"))
	return question
}

// addCondition adds one that never holds, for somebody to replace.
func (e *entry) addCondition(question *yaml.Node) {
	hint := "an expression that holds while it waits for this; it may ask memo, search and activities"
	if len(e.queries) > 0 {
		put(question, "query", text(e.queries[0]))
		hint = `an expression that holds while it waits for this, such as query == "waiting"`
	}
	when := text("false")
	when.LineComment = hint
	put(question, "when", when)
}

// form is an elicitation form, and what of its answer is sent on.
type form struct {
	shape   shape
	payload string // "" for nothing
}

// formOf is the form that asks for what came in by a way, and a remark on what it cannot ask.
func formOf(w *way) (f form, remark string) {
	s, remark := w.shape()
	switch {
	case s == nil:
		return form{}, remark
	case s.objects > 0 && len(s.types) == 1:
		asked, left := s.primitives()
		if len(left) > 0 {
			remark = "a form cannot ask for " + printable(strings.Join(left, ", "))
		}
		return form{asked, "${answer}"}, remark
	}
	only := shape{types: []string{"object"}, objects: 1, properties: []*property{{name: "answer", in: 1, shape: *s}}}
	if asked, left := only.primitives(); len(left) == 0 {
		return form{asked, "${answer.answer}"}, remark
	}
	return form{}, "it came with what no form can ask for: " + strings.Join(s.types, " or ")
}

// shape is that of everything that came in, or nil if that was nothing, with a remark on why there is none.
func (w *way) shape() (s *shape, remark string) {
	if len(w.payloads) == 0 {
		return nil, "did not come here, so that its payload is unknown"
	}
	var values []value
	for _, payloads := range w.payloads {
		if n := len(payloads.GetPayloads()); n > 1 {
			return nil, fmt.Sprintf("came with %d arguments, and a question gives one", n)
		}
		decoded, err := decode(payloads)
		if err != nil {
			return nil, "its payload cannot be read: " + printable(err.Error())
		}
		values = append(values, decoded...)
	}
	s, err := shapeOf(values...)
	if err != nil {
		return nil, "its payload cannot be read: " + printable(err.Error())
	}
	if len(s.types) == 0 || s.is("null") {
		return nil, ""
	}
	return s, ""
}

// primitives is an object of the properties that a form can ask for (MCP 2026-07-28, Elicitation), and the names of the
// others.
func (s *shape) primitives() (asked shape, left []string) {
	asked = shape{types: []string{"object"}, objects: s.objects}
	for _, p := range s.properties {
		types := slices.DeleteFunc(slices.Clone(p.shape.types), func(t string) bool { return t == "null" })
		if len(types) != 1 || types[0] == "object" || types[0] == "array" {
			left = append(left, p.name)
			continue
		}
		primitive := *p
		if len(types) < len(p.shape.types) { // it may be left out
			primitive.in = 0
		}
		primitive.shape.types = types
		asked.properties = append(asked.properties, &primitive)
	}
	return asked, left
}
