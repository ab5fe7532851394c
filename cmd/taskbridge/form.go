package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// elicitation is a question to a person (MCP 2026-07-28, Elicitation): a form, or a URL to open.
type elicitation struct {
	Mode            string          `json:"mode"`
	Message         string          `json:"message"`
	URL             string          `json:"url"`
	RequestedSchema json.RawMessage `json:"requestedSchema"`
	fields          []field
}

func parseElicitation(params []byte) (*elicitation, error) {
	e := new(elicitation)
	if err := json.Unmarshal(params, e); err != nil {
		return nil, fmt.Errorf("the question cannot be read: %w", err)
	}
	if e.RequestedSchema != nil {
		var err error
		if e.fields, err = parseObject(e.RequestedSchema); err != nil {
			return nil, fmt.Errorf("the question's form cannot be read: %w", err)
		}
	}
	return e, nil
}

// Actions of an answer.
const (
	accept  = "accept"
	decline = "decline"
	cancel  = "cancel"
)

// elicitResult is the answer to an elicitation.
type elicitResult struct {
	Action  string                     `json:"action"`
	Content map[string]json.RawMessage `json:"content,omitzero"`
}

// acceptDefaults accepts a form with the defaults of its fields. Required y/n fields without one are answered y.
func (e *elicitation) acceptDefaults() (elicitResult, error) {
	if e.Mode == "url" {
		return elicitResult{Action: accept}, nil
	}
	content := map[string]json.RawMessage{}
	for _, f := range e.fields {
		switch {
		case f.Default != nil:
			content[f.Name] = f.Default
		case f.Required && f.kind() == "boolean":
			content[f.Name] = json.RawMessage("true")
		case f.Required:
			return elicitResult{}, fmt.Errorf("field %q has no default", f.Name)
		}
	}
	return elicitResult{accept, content}, nil
}

// field is one property of an object schema. Forms have primitive ones only; others are typed as JSON.
type field struct {
	Name        string            `json:"-"`
	Required    bool              `json:"-"`
	Type        json.RawMessage   `json:"type"`
	Title       string            `json:"title"`
	Description string            `json:"description"`
	Format      string            `json:"format"`
	Default     json.RawMessage   `json:"default"`
	Enum        []json.RawMessage `json:"enum"`
	EnumNames   []string          `json:"enumNames"`
	OneOf       []titled          `json:"oneOf"`
	Items       struct {
		Enum  []json.RawMessage `json:"enum"`
		AnyOf []titled          `json:"anyOf"`
	} `json:"items"`
	MinLength *int     `json:"minLength"`
	MaxLength *int     `json:"maxLength"`
	MinItems  *int     `json:"minItems"`
	MaxItems  *int     `json:"maxItems"`
	Minimum   *float64 `json:"minimum"`
	Maximum   *float64 `json:"maximum"`
}

type titled struct {
	Const json.RawMessage `json:"const"`
	Title string          `json:"title"`
}

// parseObject reads the properties of an object schema in the order in which they are written.
func parseObject(schema []byte) ([]field, error) {
	var object struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, err
	}
	if object.Properties == nil {
		return nil, nil
	}
	decoder := jsontext.NewDecoder(bytes.NewReader(object.Properties))
	if token, err := decoder.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errors.New("properties is not an object")
	}
	var fields []field
	for decoder.PeekKind() == '"' {
		name, err := decoder.ReadToken()
		if err != nil {
			return nil, err
		}
		f := field{Name: name.String()}
		value, err := decoder.ReadValue()
		if err != nil {
			return nil, err
		}
		if value.Kind() == '{' { // else true, which allows everything
			if err := json.Unmarshal(value, &f); err != nil {
				return nil, fmt.Errorf("property %q: %w", f.Name, err)
			}
		}
		f.Required = slices.Contains(object.Required, f.Name)
		fields = append(fields, f)
	}
	return fields, nil
}

// kind is the field's type, "" for none or several.
func (f field) kind() string {
	var kind string
	_ = json.Unmarshal(f.Type, &kind) // several types stay ""
	return kind
}

// choice is one value of an enumeration.
type choice struct {
	value json.RawMessage
	label string
}

// choices are the values among which to choose, none if the field is no enumeration.
func (f field) choices() []choice {
	var choices []choice
	for i, value := range slices.Concat(f.Enum, f.Items.Enum) {
		label := plain(value)
		if i < len(f.EnumNames) {
			label = f.EnumNames[i]
		}
		choices = append(choices, choice{value, label})
	}
	for _, t := range slices.Concat(f.OneOf, f.Items.AnyOf) {
		if t.Const == nil {
			return nil // alternatives of another sort
		}
		label := t.Title
		if label == "" {
			label = plain(t.Const)
		}
		choices = append(choices, choice{t.Const, label})
	}
	return choices
}

// plain is a JSON value as a person writes it: strings without quotes.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// show is a value of the field as it would be typed.
func (f field) show(value json.RawMessage) string {
	var several []json.RawMessage
	switch {
	case value == nil:
		return ""
	case f.kind() == "array" && json.Unmarshal(value, &several) == nil:
		labels := make([]string, len(several))
		for i, one := range several {
			labels[i] = f.label(one)
		}
		return strings.Join(labels, ",")
	case f.kind() == "boolean" && string(value) == "true":
		return "y"
	case f.kind() == "boolean" && string(value) == "false":
		return "n"
	}
	return f.label(value)
}

func (f field) label(value json.RawMessage) string {
	for _, c := range f.choices() {
		if plain(c.value) == plain(value) {
			return c.label
		}
	}
	return plain(value)
}

// parse reads what a person typed for the field. The error says what would be right.
func (f field) parse(text string) (json.RawMessage, error) {
	if choices := f.choices(); len(choices) > 0 {
		if f.kind() == "array" {
			return f.parseSeveral(choices, text)
		}
		return parseChoice(choices, text)
	}
	switch f.kind() {
	case "boolean":
		return parseYesNo(text)
	case "integer", "number":
		return f.parseNumber(text)
	case "string":
		return f.parseText(text)
	}
	value := json.RawMessage(text)
	if !json.Valid(value) {
		return nil, errors.New(`write JSON, such as "text", 1, [1,2] or {"a":1}`)
	}
	return value, nil
}

// parseChoice takes a value, a label or a number from the list.
func parseChoice(choices []choice, text string) (json.RawMessage, error) {
	for _, c := range choices {
		if text == plain(c.value) || text == c.label {
			return c.value, nil
		}
	}
	if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1].value, nil
	}
	return nil, fmt.Errorf("%q is not one of them: write a number from 1 to %d, or the text", text, len(choices))
}

func (f field) parseSeveral(choices []choice, text string) (json.RawMessage, error) {
	chosen := []json.RawMessage{}
	for part := range strings.SplitSeq(text, ",") {
		value, err := parseChoice(choices, strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		chosen = append(chosen, value)
	}
	if err := within(float64(len(chosen)), count(f.MinItems), count(f.MaxItems), "choices"); err != nil {
		return nil, err
	}
	return json.Marshal(chosen)
}

func parseYesNo(text string) (json.RawMessage, error) {
	switch strings.ToLower(text) {
	case "y", "yes", "true":
		return json.RawMessage("true"), nil
	case "n", "no", "false":
		return json.RawMessage("false"), nil
	}
	return nil, errors.New("write y or n")
}

func (f field) parseNumber(text string) (json.RawMessage, error) {
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("%q is not a number", text)
	}
	if f.kind() == "integer" && strings.ContainsAny(text, ".eE") {
		return nil, fmt.Errorf("%q is not a whole number", text)
	}
	return json.RawMessage(text), within(number, f.Minimum, f.Maximum, "")
}

func (f field) parseText(text string) (json.RawMessage, error) {
	if err := within(float64(utf8.RuneCountInString(text)), count(f.MinLength), count(f.MaxLength), "characters"); err != nil {
		return nil, err
	}
	if err := checkFormat(f.Format, text); err != nil {
		return nil, err
	}
	return json.Marshal(text)
}

// checkFormat checks the formats that forms may have (Elicitation, "Requested Schema").
func checkFormat(format, text string) error {
	switch format {
	case "email":
		if address, err := mail.ParseAddress(text); err != nil || address.Address != text {
			return errors.New("write an e-mail address, such as ada@example.com")
		}
	case "uri":
		if parsed, err := url.Parse(text); err != nil || parsed.Scheme == "" {
			return errors.New("write a URI, such as https://example.com/a")
		}
	case "date":
		if _, err := time.Parse(time.DateOnly, text); err != nil {
			return errors.New("write a date as YYYY-MM-DD")
		}
	case "date-time":
		if _, err := time.Parse(time.RFC3339, text); err != nil {
			return errors.New("write a time as YYYY-MM-DDThh:mm:ssZ")
		}
	}
	return nil
}

func count(n *int) *float64 {
	if n == nil {
		return nil
	}
	f := float64(*n)
	return &f
}

// within checks bounds, nil for none.
func within(n float64, least, most *float64, unit string) error {
	if (least == nil || n >= *least) && (most == nil || n <= *most) {
		return nil
	}
	return errors.New("must be " + bounds(least, most, unit))
}

// bounds are the bounds in words, "" for none.
func bounds(least, most *float64, unit string) string {
	text := ""
	switch {
	case least != nil && most != nil:
		text = fmt.Sprintf("%v to %v", *least, *most)
	case least != nil:
		text = fmt.Sprintf("at least %v", *least)
	case most != nil:
		text = fmt.Sprintf("at most %v", *most)
	}
	if text != "" && unit != "" {
		text += " " + unit
	}
	return text
}

// hint says in a few words what to type.
func (f field) hint() string {
	choices := len(f.choices())
	switch kind := f.kind(); {
	case choices > 0 && kind == "array":
		return join(fmt.Sprintf("numbers 1-%d with commas", choices), bounds(count(f.MinItems), count(f.MaxItems), "choices"))
	case choices > 0:
		return fmt.Sprintf("1-%d", choices)
	case kind == "boolean":
		return "y/n"
	case kind == "integer", kind == "number":
		return join(kind, bounds(f.Minimum, f.Maximum, ""))
	case kind == "string":
		return join(f.Format, bounds(count(f.MinLength), count(f.MaxLength), "characters"))
	}
	return "JSON"
}

func join(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(part string) bool { return part == "" }), ", ")
}

// example is a value to show how the field is written.
func (f field) example() string {
	if f.Default != nil {
		return string(f.Default)
	}
	choices := f.choices()
	switch kind := f.kind(); {
	case len(choices) > 0 && kind == "array":
		return "[" + string(choices[0].value) + "]"
	case len(choices) > 0:
		return string(choices[0].value)
	case kind == "boolean":
		return "true"
	case kind == "integer", kind == "number":
		if f.Minimum != nil {
			return strconv.FormatFloat(*f.Minimum, 'f', -1, 64)
		}
		return "1"
	case kind == "array":
		return "[]"
	case kind == "object":
		return "{}"
	}
	return `"…"`
}
