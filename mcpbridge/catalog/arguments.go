package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"taskbridge/mcpbridge/internal/wording"
)

// ArgumentError lists everything wrong with the arguments of a call, in words a model can correct itself by.
type ArgumentError struct {
	Violations []Violation // never empty, sorted by pointer
}

// Violation is one thing wrong with the arguments.
type Violation struct {
	Pointer string // JSON Pointer (RFC 6901) to the value, also to a missing one; "" for the arguments as a whole
	Message string
}

func (v Violation) String() string {
	if v.Pointer == "" {
		return "the arguments: " + v.Message
	}
	return v.Pointer + ": " + v.Message
}

// shownViolations is how many mistakes anybody corrects at once.
const shownViolations = 20

// Error lists the violations, one a line when there are several.
func (e *ArgumentError) Error() string {
	if len(e.Violations) == 1 {
		return "invalid arguments: " + e.Violations[0].String()
	}
	var b strings.Builder
	b.WriteString("invalid arguments:")
	for _, v := range e.Violations[:min(len(e.Violations), shownViolations)] {
		b.WriteString("\n- " + v.String())
	}
	if more := len(e.Violations) - shownViolations; more > 0 {
		fmt.Fprintf(&b, "\n… and %d more", more)
	}
	return b.String()
}

// argumentError sorts the violations and drops repetitions; it returns nil for none.
func argumentError(found []violation) error {
	if len(found) == 0 {
		return nil
	}
	violations := make([]Violation, len(found))
	for i, v := range found {
		violations[i] = Violation{v.where.pointer(), v.message}
	}
	slices.SortFunc(violations, func(a, b Violation) int {
		return strings.Compare(a.String(), b.String())
	})
	return &ArgumentError{slices.Compact(violations)}
}

// ValidateArguments checks the arguments of a call against the tool's input schema; absent and null arguments count
// as {}. It also rejects what schemas cannot see: members given twice, names the operator has reserved, and integers
// that a header cannot carry. The error is an *ArgumentError.
func (t *Tool) ValidateArguments(args json.RawMessage) error {
	root, found := parseArguments(args)
	if root == nil || len(found) > 0 {
		return argumentError(found)
	}
	instance := root.value()
	if object, ok := instance.(map[string]any); ok {
		for name := range object {
			if t.reserved(name) {
				delete(object, name) // reported once, here
				found = append(found, violation{path{name}, notAnArgument})
			}
		}
	}
	found = append(found, validate(t.input, instance, root)...)
	return argumentError(append(found, t.unsafeHeaders(root)...))
}

// ValidateConfirmation checks the content of an accepted confirmation against the form that was asked; absent and
// null content count as {}. The error is an *ArgumentError. A tool without Confirm accepts anything.
func (t *Tool) ValidateConfirmation(content json.RawMessage) error {
	if t.confirmation == nil {
		return nil
	}
	root, found := parseArguments(content)
	if root == nil || len(found) > 0 {
		return argumentError(found)
	}
	return argumentError(ofForm(validate(t.confirmation, root.value(), root)))
}

func validate(schema *jsonschema.Schema, instance any, root *node) []violation {
	var causes *jsonschema.ValidationError
	if errors.As(schema.Validate(instance), &causes) {
		return violationsOf(causes, root, schema)
	}
	return nil
}

// parseArguments reads arguments strictly.
func parseArguments(args json.RawMessage) (*node, []violation) {
	if absent(args) {
		return parseJSON("", []byte("{}"), &reporter{}), nil
	}
	var report reporter
	var found []violation
	root := parseJSON("", args, &report)
	for _, e := range report.errors {
		found = append(found, violation{path{}, e.Error()})
	}
	if root != nil {
		found = append(found, hugeNumbers(root, nil)...)
	}
	return root, found
}

func absent(args json.RawMessage) bool {
	trimmed := bytes.TrimSpace(args)
	return len(trimmed) == 0 || string(trimmed) == "null"
}

var exponent = regexp.MustCompile(`[eE][+-]?0*([0-9]+)$`)

// maxExponent and maxDigits are beyond every number in use. Exact arithmetic on larger ones would take the memory and
// time that a caller asks for with a few bytes.
const (
	maxExponent = 400
	maxDigits   = 400
)

func hugeNumbers(n *node, at path) []violation {
	var found []violation
	if n.kind == numberNode {
		if len(n.text) > maxDigits {
			return []violation{{at, "the number has too many digits"}}
		}
		if m := exponent.FindStringSubmatch(n.text); m != nil {
			if e, err := strconv.Atoi(m[1]); err != nil || e > maxExponent {
				found = append(found, violation{at, "the exponent is out of range"})
			}
		}
	}
	for i, item := range n.items {
		found = append(found, hugeNumbers(item, at.with(i))...)
	}
	for _, m := range n.members {
		found = append(found, hugeNumbers(m.value, at.with(m.key))...)
	}
	return found
}

// reserved reports whether a client must not use the name, because the operator or the confirmation sets it. Case
// does not count, because Go workers match JSON names without regard to it.
func (t *Tool) reserved(name string) bool {
	if t.Confirm != nil && t.Confirm.Argument != "" && strings.EqualFold(name, t.Confirm.Argument) {
		return true
	}
	for fixed := range t.With {
		if strings.EqualFold(name, fixed) {
			return true
		}
	}
	return false
}

// unsafeHeaders finds integers beyond ±(2^53-1) where the MCP specification forbids them.
func (t *Tool) unsafeHeaders(root *node) []violation {
	limit := big.NewRat(1<<53-1, 1)
	var found []violation
	for _, param := range t.integers {
		var where path
		for _, name := range param.Path {
			where = where.with(name)
		}
		value := root.follow(where)
		if value == nil || value.kind != numberNode {
			continue
		}
		if r, ok := new(big.Rat).SetString(value.text); ok && r.Abs(r).Cmp(limit) > 0 {
			found = append(found, violation{where, "must be between -(2^53-1) and 2^53-1, because it is also sent as an HTTP header"})
		}
	}
	return found
}

// WorkflowArguments makes the workflow's arguments from validated arguments of a call and the content of the accepted
// confirmation; absent and null count as {}. Members go in byte for byte as they came, so big integers keep every
// digit, and top-level defaults of the schema fill in for absent ones.
//
// ArgumentsObject yields one object: the client's members, the defaults, the confirmation, then the operator's
// members sorted by name. ArgumentsPositional yields one value a name, null for what is absent. ArgumentsNone yields
// nothing. Arguments that are no JSON object, that repeat a name or use a reserved one are an error.
func (t *Tool) WorkflowArguments(args, confirmed json.RawMessage) ([]json.RawMessage, error) {
	members, err := t.merge(args, confirmed)
	if err != nil {
		return nil, err
	}
	switch t.Arguments {
	case ArgumentsNone:
		return nil, nil
	case ArgumentsPositional:
		return t.positional(members)
	default:
		return []json.RawMessage{object(members)}, nil
	}
}

// argument is one member of the merged arguments in raw JSON.
type argument struct {
	name       string
	key, value []byte
}

func newArgument(name string, value []byte) argument {
	return argument{name, appendEncoded(nil, name), value}
}

func (t *Tool) merge(args, confirmed json.RawMessage) ([]argument, error) {
	client, err := parseObject("arguments", args)
	if err != nil {
		return nil, err
	}
	var merged []argument
	for _, m := range client.members {
		if t.reserved(m.key) {
			return nil, fmt.Errorf("%q: %s", m.key, notAnArgument)
		}
		merged = append(merged, argument{m.key, m.rawKey, m.value.raw})
	}
	for _, m := range t.defaults {
		if client.get(m.key) == nil {
			merged = append(merged, newArgument(m.key, m.value.json()))
		}
	}
	if t.Confirm != nil && t.Confirm.Argument != "" {
		content, err := parseObject("confirmation", confirmed)
		if err != nil {
			return nil, err
		}
		merged = append(merged, newArgument(t.Confirm.Argument, content.raw))
	}
	for _, name := range slices.Sorted(maps.Keys(t.With)) {
		merged = append(merged, newArgument(name, t.With[name]))
	}
	return merged, nil
}

func parseObject(what string, data json.RawMessage) (*node, error) {
	root, found := parseArguments(data)
	if err := argumentError(found); err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	if root.kind != objectNode {
		return nil, fmt.Errorf("%s: expected a JSON object, found %s", what, root.describe())
	}
	return root, nil
}

func object(members []argument) json.RawMessage {
	b := []byte{'{'}
	for i, m := range members {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, m.key...)
		b = append(b, ':')
		b = append(b, m.value...)
	}
	return append(b, '}')
}

func (t *Tool) positional(members []argument) ([]json.RawMessage, error) {
	values := make([]json.RawMessage, len(t.Positional))
	for i := range values {
		values[i] = json.RawMessage("null")
	}
	for _, m := range members {
		i := slices.Index(t.Positional, m.name)
		if i < 0 {
			return nil, fmt.Errorf("%q has no place among the positional arguments %s", m.name, wording.List(t.Positional, "and"))
		}
		values[i] = m.value
	}
	return values, nil
}
