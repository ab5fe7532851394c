package expression

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext" // says where in the JSON it is
)

const (
	opening = "${"
	escaped = "$${"
)

// Text is compiled text in which ${…} stands for an expression, and $${ for ${.
type Text struct {
	Parts []Part
}

// Part of a text: an expression or, without one, literal text.
type Part struct {
	Literal    string
	Expression *Expression
}

// Text compiles a text. The error is a *[Problem].
func (s *Scope) Text(text string) (*Text, error) {
	compiled := &Text{}
	var literal strings.Builder
	flush := func() {
		if literal.Len() > 0 {
			compiled.Parts = append(compiled.Parts, Part{Literal: literal.String()})
			literal.Reset()
		}
	}
	for text != "" {
		at := strings.IndexByte(text, '$')
		switch {
		case at < 0:
			literal.WriteString(text)
			text = ""
		case strings.HasPrefix(text[at:], escaped):
			literal.WriteString(text[:at] + opening)
			text = text[at+len(escaped):]
		case strings.HasPrefix(text[at:], opening):
			literal.WriteString(text[:at])
			flush()
			source, rest, ok := cutExpression(text[at+len(opening):])
			if !ok {
				return nil, problem(`%s has no } that ends it; write $${ for the characters ${ themselves`, shorten(text[at:]))
			}
			e, err := s.placeholder(source)
			if err != nil {
				return nil, err
			}
			compiled.Parts = append(compiled.Parts, Part{Expression: e})
			text = rest
		default:
			literal.WriteString(text[:at+1])
			text = text[at+1:]
		}
	}
	flush()
	return compiled, nil
}

// placeholder compiles what stands between ${ and }.
func (s *Scope) placeholder(source string) (*Expression, error) {
	label := opening + shorten(source) + "}"
	ast, err := s.check(source)
	if err == nil {
		return s.compile(ast, label)
	}
	var p *Problem
	if errors.As(err, &p) {
		p.Message = label + ": " + p.Message
	}
	return nil, err
}

// cutExpression finds the } that ends an expression: not one in a string, in a comment or of a { in it.
func cutExpression(text string) (source, rest string, ok bool) {
	open := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '{':
			open++
		case c == '}' && open == 0:
			return text[:i], text[i+1:], true
		case c == '}':
			open--
		case c == '/' && strings.HasPrefix(text[i:], "//"):
			end := strings.IndexByte(text[i:], '\n')
			if end < 0 {
				return "", "", false
			}
			i += end
		case c == '"' || c == '\'':
			raw := i > 0 && strings.ContainsRune("rR", rune(text[i-1]))
			end := stringEnd(text[i:], raw)
			if end < 0 {
				return "", "", false
			}
			i += end - 1
		}
	}
	return "", "", false
}

// stringEnd returns the length of the string literal that the text begins with, or -1 if it does not end.
func stringEnd(text string, raw bool) int {
	quote := text[:1]
	if triple := strings.Repeat(quote, 3); strings.HasPrefix(text, triple) {
		quote = triple
	}
	for i := len(quote); i < len(text); i++ {
		if text[i] == '\\' && !raw {
			i++
		} else if strings.HasPrefix(text[i:], quote) {
			return i + len(quote)
		}
	}
	return -1
}

// Constant returns the text if there is no expression in it.
func (t *Text) Constant() (text string, ok bool) {
	for _, part := range t.Parts {
		if part.Expression != nil {
			return "", false
		}
		text += part.Literal
	}
	return text, true
}

// String fills in the values. What is filled in goes through check, unless that is nil, whose error is returned.
func (t *Text) String(values *Values, check func(e *Expression, filled string) error) (string, error) {
	var b strings.Builder
	for _, part := range t.Parts {
		text := part.Literal
		if e := part.Expression; e != nil {
			var err error
			if text, err = e.Text(values); err == nil && check != nil {
				err = check(e, text)
			}
			if err != nil {
				return "", err
			}
		}
		if b.Len()+len(text) > maxResult {
			return "", errTooLarge
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Template is compiled JSON in whose strings ${…} stands for an expression. A string that is nothing but one becomes its
// value, of whatever type.
type Template struct {
	pieces []piece
}

// piece is JSON as it was written or, if there is a text, a string with expressions in it.
type piece struct {
	json []byte
	text *Text
}

// Template compiles JSON. The error is a *[Problem].
func (s *Scope) Template(data json.RawMessage) (*Template, error) {
	decoder := jsontext.NewDecoder(bytes.NewReader(data))
	compiled, copied := &Template{}, int64(0)
	for {
		encoded, err := nextString(decoder)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, problem("is not JSON: %v", err)
		}
		unquoted, err := jsontext.AppendUnquote(nil, encoded)
		if err != nil {
			return nil, problem("is not JSON: %v", err)
		}
		text, err := s.member(decoder, string(unquoted))
		if err != nil {
			return nil, err
		}
		if literal, constant := text.Constant(); constant && literal == string(unquoted) {
			continue
		}
		end := decoder.InputOffset()
		compiled.pieces = append(compiled.pieces, piece{json: data[copied : end-int64(len(encoded))]}, piece{text: text})
		copied = end
	}
	compiled.pieces = append(compiled.pieces, piece{json: data[copied:]})
	return compiled, nil
}

// nextString reads up to the next string, and that.
func nextString(decoder *jsontext.Decoder) (jsontext.Value, error) {
	for {
		if decoder.PeekKind() == '"' {
			return decoder.ReadValue()
		}
		if _, err := decoder.ReadToken(); err != nil {
			return nil, err
		}
	}
}

// member compiles the string that was just read. Names of members are none that expressions may be in.
func (s *Scope) member(decoder *jsontext.Decoder, text string) (*Text, error) {
	var p *Problem
	compiled, err := s.Text(text)
	if kind, length := decoder.StackIndex(decoder.StackDepth()); kind == '{' && length%2 == 1 {
		if !strings.Contains(text, opening) {
			return &Text{Parts: []Part{{Literal: text}}}, nil
		}
		err = problem("the name of a member cannot have ${ in it; expressions are for values")
	}
	if errors.As(err, &p) {
		p.Path = pathIn(decoder)
	}
	return compiled, err
}

// pathIn leads to the value that was just read.
func pathIn(decoder *jsontext.Decoder) []any {
	var path []any
	level := 0
	for token := range decoder.StackPointer().Tokens() {
		level++
		if kind, length := decoder.StackIndex(level); kind == '[' {
			path = append(path, int(length-1))
		} else {
			path = append(path, token)
		}
	}
	return path
}

// JSON fills in the values. The error is an *[Error], or says that the result is too large.
func (t *Template) JSON(values *Values) (json.RawMessage, error) {
	var b []byte
	for _, p := range t.pieces {
		var err error
		if p.text == nil {
			b = append(b, p.json...)
		} else if b, err = p.text.appendJSON(b, values); err != nil {
			return nil, err
		}
		if len(b) > maxResult {
			return nil, errTooLarge
		}
	}
	return b, nil
}

func (t *Text) appendJSON(b []byte, values *Values) ([]byte, error) {
	if len(t.Parts) == 1 && t.Parts[0].Expression != nil {
		return t.Parts[0].Expression.appendJSON(b, values)
	}
	text, err := t.String(values, nil)
	if err != nil {
		return nil, err
	}
	return appendEncoded(b, text), nil
}
