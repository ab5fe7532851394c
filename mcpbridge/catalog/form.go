package catalog

import (
	"slices"

	"taskbridge/mcpbridge/internal/wording"
)

// The keywords of MCP's elicitation forms: flat objects of primitive properties
// (MCP 2026-07-28, client/elicitation, "Requested Schema").
var (
	formKeywords = []string{"$schema", "type", "properties", "required"}
	formTypes    = []string{"string", "number", "integer", "boolean", "array"}
	formFormats  = []string{"email", "uri", "date", "date-time"}
)

// formProperty returns the keywords allowed beside the given type.
func formProperty(declared string) []string {
	common := []string{"type", "title", "description", "default"}
	switch declared {
	case "string":
		return append(common, "minLength", "maxLength", "format", "enum", "oneOf")
	case "number", "integer":
		return append(common, "minimum", "maximum")
	case "array":
		return append(common, "minItems", "maxItems", "items")
	default:
		return common
	}
}

// form checks one elicitation schema.
type form struct {
	check
	ok bool
}

func (f *form) report(p path, format string, args ...any) {
	f.ok = false
	f.fail(p, format, args...)
}

// checkForm reports whether the schema is one that MCP clients can show as a form.
func checkForm(c check, at path, root *node) bool {
	if problem := objectAtRoot(root); problem != "" {
		c.fail(at, "%s", problem)
		return false
	}
	f := form{check: c, ok: true}
	f.keywords(at, root, formKeywords, "a form")
	properties := root.get("properties")
	if properties == nil || properties.kind != objectNode {
		f.report(at.with("properties"), "is missing; a form is a mapping of property names to their schemas")
		return false
	}
	for _, m := range properties.members {
		f.property(at.with("properties").with(m.key), m.value)
	}
	if required := root.get("required"); required != nil {
		f.required(at.with("required"), required, properties)
	}
	return f.ok
}

func (f *form) keywords(at path, schema *node, allowed []string, where string) {
	for _, m := range schema.members {
		if !slices.Contains(allowed, m.key) {
			f.report(at.with(m.key), "%s", wording.Unknown("keyword in "+where, m.key, allowed))
		}
	}
}

func (f *form) required(at path, required, properties *node) {
	for i, name := range required.items {
		if properties.get(name.text) == nil {
			f.report(at.with(i), "%s", wording.Unknown("property", name.text, properties.keys()))
		}
	}
}

func (f *form) property(at path, schema *node) {
	declared := schema.get("type")
	if declared == nil || !slices.Contains(formTypes, declared.text) {
		f.report(at.with("type"), "a form property is a %s; nested objects cannot be asked for", wording.List(formTypes, "or"))
		return
	}
	f.keywords(at, schema, formProperty(declared.text), "a form property of type "+declared.text)
	if format := schema.get("format"); format != nil && !slices.Contains(formFormats, format.text) {
		f.report(at.with("format"), "%s cannot be asked for; use %s", format.describe(), wording.List(formFormats, "or"))
	}
	if options := schema.get("enum"); options != nil {
		f.texts(at.with("enum"), options)
	}
	if options := schema.get("oneOf"); options != nil {
		f.titled(at.with("oneOf"), options)
	}
	if declared.is("array") {
		f.selection(at.with("items"), schema.get("items"))
	}
}

// selection checks the items of a multi-select enum.
func (f *form) selection(at path, items *node) {
	switch {
	case items == nil || items.kind != objectNode:
		f.report(at, "is missing; a list is asked for by its options, as enum or anyOf")
	case items.get("anyOf") != nil:
		f.keywords(at, items, []string{"anyOf"}, "the items of a form property")
		f.titled(at.with("anyOf"), items.get("anyOf"))
	case items.get("enum") != nil:
		f.keywords(at, items, []string{"type", "enum"}, "the items of a form property")
		f.texts(at.with("enum"), items.get("enum"))
		if !items.get("type").is("string") {
			f.report(at.with("type"), "the options are strings; write \"type: string\"")
		}
	default:
		f.report(at, "a list is asked for by its options, as enum or anyOf")
	}
}

func (f *form) texts(at path, options *node) {
	if len(options.items) == 0 {
		f.report(at, "expected a list of strings, found %s", emptyOr(options))
	}
	for i, option := range options.items {
		if option.kind != textNode {
			f.report(at.with(i), "expected a string, found %s", option.describe())
		}
	}
}

// titled checks options of the form {const, title}.
func (f *form) titled(at path, options *node) {
	if len(options.items) == 0 {
		f.report(at, "expected a list of {const, title}, found %s", emptyOr(options))
	}
	for i, option := range options.items {
		where := at.with(i)
		f.keywords(where, option, []string{"const", "title"}, "an option")
		for _, keyword := range []string{"const", "title"} {
			if value := option.get(keyword); value == nil || value.kind != textNode {
				f.report(where.with(keyword), "every option needs a string here")
			}
		}
	}
}

func emptyOr(n *node) string {
	if n.kind == listNode {
		return "an empty list"
	}
	return n.describe()
}
