package catalog

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"taskbridge/mcpbridge/internal/wording"
)

// entries returns the members of an object; n may be nil or anything else.
func (n *node) entries() []member {
	if n == nil {
		return nil
	}
	return n.members
}

// objectAtRoot returns what keeps a schema from being an MCP input schema, or "".
func objectAtRoot(root *node) string {
	if root.kind != objectNode {
		return fmt.Sprintf("a schema is a mapping, found %s", root.describe())
	}
	declared := root.get("type")
	if declared == nil {
		return `the schema has no type; add "type: object"`
	}
	if !declared.is("object") {
		return "the type at the root of the schema must be object, found " + declared.describe()
	}
	return ""
}

// composing keywords contribute properties that additionalProperties beside them does not see.
var composing = []string{"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "then", "else",
	"dependentSchemas", "dependencies", "unevaluatedProperties"}

func composed(root *node) bool {
	return slices.ContainsFunc(composing, func(keyword string) bool { return root.get(keyword) != nil })
}

// closeObject adds "additionalProperties": false unless the author has said something about other properties, so that
// a mistyped argument name is an error that the caller can mend instead of an argument that is ignored. A root that
// is composed of other schemas is left alone: the keyword would reject the properties those declare.
func closeObject(root *node) {
	if root.get("additionalProperties") != nil || composed(root) {
		return
	}
	closed := member{key: "additionalProperties", value: &node{kind: boolNode, text: "false"}}
	root.members = append(slices.Clip(root.members), closed)
}

// schemaURL is the base of every schema compiled. It is never fetched.
const schemaURL = "catalog:///schema"

// closedWorld is a schema loader that loads nothing: a catalog must mean the same with and without a network, and
// must not make the server fetch what an author names.
type closedWorld struct{}

var errOutside = errors.New("only references within the schema, like #/$defs/name, are followed")

func (closedWorld) Load(string) (any, error) {
	return nil, errOutside
}

// compile compiles a schema, 2020-12 unless it names another dialect, and reports what is wrong below at.
func compile(c check, at path, root *node) (*jsonschema.Schema, bool) {
	if !checkBefore(c, at, root) {
		return nil, false
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	compiler.UseLoader(closedWorld{})
	err := compiler.AddResource(schemaURL, root.value())
	var schema *jsonschema.Schema
	if err == nil {
		schema, err = compiler.Compile(schemaURL)
	}
	if err != nil {
		reportSchema(c, at, root, err)
		return nil, false
	}
	return schema, true
}

var typeNames = []string{"string", "integer", "number", "boolean", "object", "array", "null"}

// checkBefore finds what the compiler's meta-schema words badly (types), knows no reason for (regular expressions) or
// cannot handle (huge exponents).
func checkBefore(c check, at path, root *node) bool {
	ok := true
	fail := func(p path, format string, args ...any) {
		ok = false
		c.fail(at.join(p), format, args...)
	}
	for _, huge := range hugeNumbers(root, nil) {
		fail(huge.where, "%s", huge.message)
	}
	walkSchemas(root, nil, func(p path, schema *node) {
		if declared := schema.get("type"); declared != nil {
			checkType(fail, p.with("type"), declared)
			for i, item := range declared.items {
				checkType(fail, p.with("type").with(i), item)
			}
		}
		if pattern := schema.get("pattern"); pattern != nil {
			checkPattern(fail, p.with("pattern"), pattern.text)
		}
		for _, m := range schema.get("patternProperties").entries() {
			checkPattern(fail, p.with("patternProperties").with(m.key), m.key)
		}
	})
	return ok
}

func checkPattern(fail func(p path, format string, args ...any), at path, pattern string) {
	var syntax *syntax.Error
	if _, err := regexp.Compile(pattern); errors.As(err, &syntax) {
		fail(at, "not a regular expression in RE2 syntax: %s in %q", syntax.Code, shorten(pattern))
	}
}

func checkType(fail func(p path, format string, args ...any), at path, declared *node) {
	if declared.kind == textNode && !slices.Contains(typeNames, declared.text) {
		fail(at, "%s", wording.Unknown(fmt.Sprintf("type %q", shorten(declared.text)), declared.text, typeNames))
	}
}

// reportSchema words a compile error.
func reportSchema(c check, at path, root *node, err error) {
	var (
		invalid *jsonschema.SchemaValidationError
		load    *jsonschema.LoadURLError
		draft   *jsonschema.UnsupportedDraftError
		pointer *jsonschema.JSONPointerNotFoundError
		anchor  *jsonschema.AnchorNotFoundError
		causes  *jsonschema.ValidationError
	)
	switch {
	case errors.As(err, &invalid) && errors.As(invalid.Err, &causes):
		for _, v := range violationsOf(causes, root, nil) {
			c.fail(at.join(v.where), "%s", v.message)
		}
	case errors.As(err, &load):
		p := findReference(root, load.URL)
		if len(p) > 0 && p[len(p)-1] == "$schema" {
			c.fail(at.join(p), "unknown JSON Schema dialect %q; remove it for 2020-12", root.follow(p).text)
			return
		}
		c.fail(at.join(p), "%q is outside the schema; %v", written(root, p, load.URL), errOutside)
	case errors.As(err, &draft):
		c.fail(at.with("$schema"), "unknown JSON Schema dialect %q; remove it for 2020-12", draft.URL)
	case errors.As(err, &pointer):
		p := findReference(root, pointer.URL)
		c.fail(at.join(p), "the schema has nothing at %q", written(root, p, pointer.URL))
	case errors.As(err, &anchor):
		p := findReference(root, anchor.Reference)
		c.fail(at.join(p), "the schema has no anchor %q", written(root, p, anchor.Reference))
	default:
		c.fail(at, "not a JSON Schema: %v", err)
	}
}

// written returns the reference at p as the author wrote it, or what it resolves to when there is none at p.
func written(root *node, p path, resolved string) string {
	if len(p) == 0 {
		return resolved
	}
	return root.follow(p).text
}

// findReference finds the reference that resolves to the given location.
func findReference(root *node, location string) path {
	var found path
	walkSchemas(root, nil, func(p path, schema *node) {
		for _, keyword := range []string{"$ref", "$dynamicRef", "$recursiveRef", "$schema"} {
			target := schema.get(keyword)
			if found == nil && target != nil && target.text != "" && refersTo(target.text, location) {
				found = p.with(keyword)
			}
		}
	})
	return found
}

func refersTo(reference, location string) bool {
	document, _, _ := strings.Cut(reference, "#")
	return strings.HasSuffix(location, strings.TrimLeft(reference, "./")) ||
		document != "" && strings.HasSuffix(location, strings.TrimLeft(document, "./"))
}

// Keywords that hold schemas, by the shape they hold them in.
var (
	schemaMaps  = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems", "items"}
	schemas     = []string{"items", "additionalItems", "additionalProperties", "unevaluatedItems", "unevaluatedProperties",
		"contains", "propertyNames", "not", "if", "then", "else", "contentSchema"}
)

// walkSchemas visits a schema and all schemas within it, but not data such as defaults and enums.
func walkSchemas(schema *node, at path, visit func(p path, schema *node)) {
	if schema.kind != objectNode {
		return
	}
	visit(at, schema)
	for _, m := range schema.members {
		below := at.with(m.key)
		if m.value.kind == objectNode && slices.Contains(schemas, m.key) {
			walkSchemas(m.value, below, visit)
		}
		if slices.Contains(schemaMaps, m.key) {
			for _, entry := range m.value.members {
				walkSchemas(entry.value, below.with(entry.key), visit)
			}
		}
		if slices.Contains(schemaLists, m.key) {
			for i, item := range m.value.items {
				walkSchemas(item, below.with(i), visit)
			}
		}
	}
}

// checkDefaults reports top-level property defaults that their own schema rejects: they are filled in unasked.
func checkDefaults(c check, at path, root *node, schema *jsonschema.Schema) {
	for _, m := range root.get("properties").entries() {
		standard, compiled := m.value.get("default"), schema.Properties[m.key]
		if standard == nil || compiled == nil {
			continue
		}
		var causes *jsonschema.ValidationError
		if errors.As(compiled.Validate(standard.value()), &causes) {
			where := at.join(path{"properties", m.key, "default"})
			for _, v := range violationsOf(causes, standard, compiled) {
				c.fail(where.join(v.where), "%s", v.message)
			}
		}
	}
}

const headerKeyword = "x-mcp-header"

// token is an HTTP field name (RFC 9110, section 5.1).
var token = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// headerParams collects the x-mcp-header annotations, and of those the integers, and reports the ones that would make
// clients drop the tool.
func headerParams(c check, at path, root *node) (all, integers []HeaderParam) {
	seen := map[string]string{}
	walkSchemas(root, nil, func(p path, schema *node) {
		name := schema.get(headerKeyword)
		if name == nil {
			return
		}
		where := at.join(p).with(headerKeyword)
		members := propertyChain(p)
		switch first, taken := seen[strings.ToLower(name.text)]; {
		case name.kind != textNode || !token.MatchString(name.text):
			c.fail(where, "a header name is one or more letters, digits and !#$%%&'*+-.^_`|~, found %s", name.describe())
		case members == nil:
			c.fail(where, "only properties reached through nothing but properties can be headers")
		case !headerType(schema):
			c.fail(where, `only properties with "type: string", integer or boolean can be headers`)
		case taken:
			c.fail(where, "the property %[2]q has the header %[1]q already; header names must differ by more than case", name.text, first)
		default:
			seen[strings.ToLower(name.text)] = strings.Join(members, ".")
			param := HeaderParam{Name: name.text, Path: members}
			all = append(all, param)
			if schema.get("type").is("integer") {
				integers = append(integers, param)
			}
		}
	})
	return all, integers
}

func headerType(schema *node) bool {
	declared := schema.get("type")
	return declared.is("string") || declared.is("integer") || declared.is("boolean")
}

// propertyChain returns the member names of a path that alternates "properties" and a name, or nil.
func propertyChain(p path) []string {
	var names []string
	for i := 0; i < len(p); i += 2 {
		if p[i] != "properties" {
			return nil
		}
		names = append(names, p[i+1].(string))
	}
	return names
}
