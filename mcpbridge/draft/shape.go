package draft

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v4"
)

// maxExample is how many characters of a value an example shows.
const maxExample = 60

// shape is what JSON values have in common.
type shape struct {
	types      []string    // JSON Schema types, in the order met
	objects    int         // how many of the values were objects
	properties []*property // of the objects, in the order met
	items      *shape      // of the arrays, nil if all were empty
	notes      []string    // what the JSON does not say
	example    string      // the first string, number or boolean, as JSON
}

type property struct {
	name  string
	in    int // how many of the objects have it
	shape shape
}

// shapeOf is the shape of values that stand for the same thing.
func shapeOf(values ...value) (*shape, error) {
	s := new(shape)
	for _, v := range values {
		if err := s.add(v); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *shape) add(v value) error {
	switch {
	case v.bytes:
		s.meet("string")
		s.remark("bytes; the worker gets a JSON string, which most SDKs read as base64")
		return nil
	case v.message != "":
		s.remark("protobuf message " + printable(v.message) + "; the worker gets plain JSON: try whether it reads that")
	}
	if v.json == nil {
		s.meet("object")
		return nil
	}
	lenient := []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}
	return s.read(jsontext.NewDecoder(bytes.NewReader(v.json), lenient...))
}

func (s *shape) read(d *jsontext.Decoder) error {
	switch d.PeekKind() {
	case '{':
		s.meet("object")
		return s.readObject(d)
	case '[':
		s.meet("array")
		return s.readArray(d)
	}
	raw, err := d.ReadValue()
	if err != nil {
		return err
	}
	s.meet(scalarType(raw))
	if s.example == "" && raw.Kind() != 'n' {
		s.example = printable(string(raw))
	}
	return nil
}

func scalarType(raw jsontext.Value) string {
	switch raw.Kind() {
	case '"':
		return "string"
	case 'n':
		return "null"
	case 't', 'f':
		return "boolean"
	}
	if bytes.ContainsAny(raw, ".eE") {
		return "number"
	}
	return "integer"
}

// meet notes a type. Where some numbers have fractions, all are numbers.
func (s *shape) meet(kind string) {
	switch i := slices.Index(s.types, "integer"); {
	case slices.Contains(s.types, kind), kind == "integer" && slices.Contains(s.types, "number"):
	case kind == "number" && i >= 0:
		s.types[i] = kind
	default:
		s.types = append(s.types, kind)
	}
}

func (s *shape) remark(note string) {
	if !slices.Contains(s.notes, note) {
		s.notes = append(s.notes, note)
	}
}

func (s *shape) readObject(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	s.objects++
	for d.PeekKind() != '}' {
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		p := s.property(name.String())
		p.in++
		if err := p.shape.read(d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

func (s *shape) property(name string) *property {
	for _, p := range s.properties {
		if p.name == name {
			return p
		}
	}
	p := &property{name: name}
	s.properties = append(s.properties, p)
	return p
}

func (s *shape) readArray(d *jsontext.Decoder) error {
	if _, err := d.ReadToken(); err != nil {
		return err
	}
	for d.PeekKind() != ']' {
		if s.items == nil {
			s.items = new(shape)
		}
		if err := s.items.read(d); err != nil {
			return err
		}
	}
	_, err := d.ReadToken()
	return err
}

// is reports whether all values were of one type.
func (s *shape) is(kind string) bool { return slices.Equal(s.types, []string{kind}) }

// schema is the JSON Schema of the shape. Values go into it only as examples, in comments.
func (s *shape) schema(examples bool) *yaml.Node {
	schema, notes := mapping(), slices.Clone(s.notes)
	switch {
	case len(s.types) == 0 || s.is("null"):
		notes = append(notes, "was null; say which type it has otherwise")
	case len(s.types) == 1:
		put(schema, "type", text(s.types[0]))
	default:
		put(schema, "type", texts(s.types))
	}
	if examples && s.example != "" {
		notes = append(notes, "such as "+s.example)
	}
	comment := strings.Join(notes, "; ")
	switch {
	case len(s.properties) > 0:
		s.describeObject(schema, examples)
	case s.items != nil:
		put(schema, "items", s.items.schema(examples))
	default:
		s.describeLeaf(schema)
		schema.Style, schema.LineComment = yaml.FlowStyle, comment
		return schema
	}
	schema.Content[0].HeadComment = comment
	return schema
}

// describeLeaf opens objects of which nothing is known.
func (s *shape) describeLeaf(schema *yaml.Node) {
	if s.objects == 0 && slices.Contains(s.types, "object") {
		put(schema, "additionalProperties", encode(true))
	}
}

func (s *shape) describeObject(schema *yaml.Node, examples bool) {
	properties, required := mapping(), []string(nil)
	for _, p := range s.properties {
		put(properties, p.name, p.shape.schema(examples))
		if p.in >= s.objects && !slices.Contains(p.shape.types, "null") {
			required = append(required, p.name)
		}
	}
	put(schema, "properties", properties)
	if len(required) > 0 {
		put(schema, "required", texts(required))
	}
}

// printable shortens text to one line that a comment can hold.
func printable(s string) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
	if runes := []rune(s); len(runes) > maxExample {
		s = string(runes[:maxExample]) + "…"
	}
	return s
}
