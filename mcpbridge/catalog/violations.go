package catalog

import (
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"

	"taskbridge/mcpbridge/internal/wording"
)

// violation is a complaint of the schema library in our words.
type violation struct {
	where   path
	message string
}

const (
	notAnArgument = "is not an argument of this tool"
	notAField     = "is not a field of this form"
)

// ofForm words complaints about the arguments of a tool for the fields of a form.
func ofForm(found []violation) []violation {
	for i := range found {
		found[i].message = strings.Replace(found[i].message, notAnArgument, notAField, 1)
	}
	return found
}

// violationsOf flattens the library's tree of causes. root is the value that was validated; schema, when known, is
// what it was validated against and gives the names to suggest.
func violationsOf(e *jsonschema.ValidationError, root *node, schema *jsonschema.Schema) []violation {
	v := violations{root: root, schema: schema}
	v.add(e)
	return v.found
}

type violations struct {
	root   *node
	schema *jsonschema.Schema
	found  []violation
}

func (v *violations) fail(where path, format string, args ...any) {
	v.found = append(v.found, violation{where, fmt.Sprintf(format, args...)})
}

func (v *violations) add(e *jsonschema.ValidationError) {
	where := v.root.steps(e.InstanceLocation)
	switch k := e.ErrorKind.(type) {
	case *kind.Schema, *kind.Group, *kind.AllOf, *kind.Reference:
		for _, cause := range e.Causes {
			v.add(cause)
		}
	case *kind.AnyOf:
		v.alternatives(e, where)
	case *kind.OneOf:
		if len(k.Subschemas) == 0 {
			v.alternatives(e, where)
			return
		}
		v.fail(where, "fits more than one of the alternatives of which exactly one may fit")
	case *kind.Required:
		for _, name := range k.Missing {
			v.fail(where.with(name), "is required")
		}
	case *kind.AdditionalProperties:
		for _, name := range k.Properties[:min(len(k.Properties), 5*shownViolations)] { // finding a similar name takes time
			v.fail(where.with(name), "%s", v.notKnown(where, name))
		}
	case *kind.PropertyNames:
		v.memberName(e, k.Property)
	default:
		v.fail(where, "%s", v.word(e, where))
	}
}

// memberName words the complaint about the name of a member.
func (v *violations) memberName(e *jsonschema.ValidationError, name string) {
	where, _ := holder(v.root, name, len(e.InstanceLocation))
	var reasons []violation
	for _, cause := range e.Causes {
		reasons = append(reasons, violationsOf(cause, &node{kind: textNode, text: name}, nil)...)
	}
	v.fail(where.with(name), "the name is not allowed here: it %s", inOneLine(reasons, nil))
}

// holder finds the object that has the named member at the given depth. Complaints about names (jsonschema v6.0.3)
// carry a place of the right depth only: it lies in a buffer that the library goes on writing to.
func holder(n *node, name string, depth int) (path, bool) {
	if depth == 0 {
		return nil, n.get(name) != nil
	}
	for i, item := range n.items {
		if below, ok := holder(item, name, depth-1); ok {
			return path{i}.join(below), true
		}
	}
	for _, m := range n.members {
		if below, ok := holder(m.value, name, depth-1); ok {
			return path{m.key}.join(below), true
		}
	}
	return nil, false
}

// notKnown words the complaint about a property that the schema does not declare.
func (v *violations) notKnown(where path, name string) string {
	message := "is not a known property"
	if len(where) == 0 {
		message = notAnArgument
	}
	schema := v.schema
	for _, step := range where {
		property, ok := step.(string)
		if !ok || schema == nil {
			return message
		}
		schema = schema.Properties[property]
	}
	if schema == nil {
		return message
	}
	known := slices.Sorted(maps.Keys(schema.Properties))
	if near := wording.Nearest(name, known); near != "" {
		return fmt.Sprintf("%s; did you mean %q?", message, near)
	}
	if len(known) == 0 {
		return message
	}
	return message + "; known are " + wording.List(known, "and")
}

// alternatives words a value that fits none of several schemas. When its type leaves just one of them, the complaints
// of that one are the useful ones.
func (v *violations) alternatives(e *jsonschema.ValidationError, where path) {
	var branches [][]violation
	var fitting [][]violation
	for _, cause := range e.Causes {
		branch := violationsOf(cause, v.root, v.schema)
		branches = append(branches, branch)
		if !wrongType(cause, len(e.InstanceLocation)) {
			fitting = append(fitting, branch)
		}
	}
	if len(fitting) == 1 {
		v.found = append(v.found, fitting[0]...)
		return
	}
	var words []string
	for _, branch := range branches {
		words = append(words, inOneLine(branch, where))
	}
	v.fail(where, "fits none of the alternatives: %s", strings.Join(words, "; or "))
}

// wrongType reports whether a cause is a type mismatch of the value at the given depth itself.
func wrongType(e *jsonschema.ValidationError, depth int) bool {
	if _, ok := e.ErrorKind.(*kind.Type); ok {
		return len(e.InstanceLocation) == depth
	}
	return slices.ContainsFunc(e.Causes, func(cause *jsonschema.ValidationError) bool { return wrongType(cause, depth) })
}

// inOneLine joins the complaints of one alternative; their places are shown relative to it.
func inOneLine(found []violation, where path) string {
	words := make([]string, len(found))
	for i, f := range found {
		words[i] = f.message
		if below := f.where[len(where):]; len(below) > 0 {
			words[i] = below.pointer() + " " + f.message
		}
	}
	return strings.Join(words, " and ")
}

// word words a single complaint.
func (v *violations) word(e *jsonschema.ValidationError, where path) string {
	switch k := e.ErrorKind.(type) {
	case *kind.Type:
		return fmt.Sprintf("must be %s, found %s", typesInWords(k.Want), v.shown(where))
	case *kind.Enum:
		return fmt.Sprintf("must be one of %s, found %s", values(k.Want), v.shown(where))
	case *kind.Const:
		return fmt.Sprintf("must be %s, found %s", values([]any{k.Want}), v.shown(where))
	case *kind.FalseSchema:
		return "is not allowed here"
	case *kind.Not:
		return fmt.Sprintf("%s is one of the values that are not allowed", v.shown(where))
	case *kind.Pattern:
		return fmt.Sprintf("must match the regular expression %s, found %s", k.Want, v.shown(where))
	case *kind.Format:
		return fmt.Sprintf("must be in the format %s, found %s", k.Want, v.shown(where))
	case *kind.Minimum:
		return fmt.Sprintf("must be at least %s, found %s", rational(k.Want), v.shown(where))
	case *kind.Maximum:
		return fmt.Sprintf("must be at most %s, found %s", rational(k.Want), v.shown(where))
	case *kind.ExclusiveMinimum:
		return fmt.Sprintf("must be more than %s, found %s", rational(k.Want), v.shown(where))
	case *kind.ExclusiveMaximum:
		return fmt.Sprintf("must be less than %s, found %s", rational(k.Want), v.shown(where))
	case *kind.MultipleOf:
		return fmt.Sprintf("must be a multiple of %s, found %s", rational(k.Want), v.shown(where))
	case *kind.MinLength:
		return fmt.Sprintf("must have at least %d characters, has %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("must have at most %d characters, has %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("must have at least %d items, has %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("must have at most %d items, has %d", k.Want, k.Got)
	case *kind.MinProperties:
		return fmt.Sprintf("must have at least %d members, has %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("must have at most %d members, has %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("items must differ, but items %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.DependentRequired:
		return fmt.Sprintf("with %q, %s must be given too", k.Prop, wording.List(k.Missing, "and"))
	default:
		return plain(e)
	}
}

// plain is the library's own wording of one complaint, without its causes and place.
func plain(e *jsonschema.ValidationError) string {
	alone := jsonschema.ValidationError{ErrorKind: e.ErrorKind}
	return strings.TrimPrefix(alone.Error(), "at '': ")
}

func (v *violations) shown(where path) string {
	if n := v.root.follow(where); n != nil {
		switch n.kind {
		case objectNode:
			return "an object"
		case listNode:
			return "an array"
		}
		return n.describe()
	}
	return "nothing"
}

func typesInWords(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			words[i] = "null"
		case "array", "integer", "object":
			words[i] = "an " + t
		default:
			words[i] = "a " + t
		}
	}
	return wording.List(words, "or")
}

func values(allowed []any) string {
	words := make([]string, len(allowed))
	for i, value := range allowed {
		words[i] = shorten(string(appendEncoded(nil, value)))
	}
	return wording.List(words, "or")
}

// rational writes a bound of a schema without a fraction bar where decimals can say the same.
func rational(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	if digits, exact := r.FloatPrec(); exact {
		return r.FloatString(digits)
	}
	return r.RatString()
}
