package catalog

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"
)

// maxDepth bounds the nesting of anything read, so that no input can exhaust the stack or the schema compiler.
const maxDepth = 200

type nodeKind int

const (
	nullNode nodeKind = iota
	boolNode
	numberNode
	textNode
	listNode
	objectNode
)

// node is a JSON value that remembers where it was written, in which order, and its numbers digit by digit.
// YAML and JSON files are both read into it.
type node struct {
	kind    nodeKind
	at      position
	text    string // of a textNode its value; of a number or boolean its JSON form
	items   []*node
	members []member
	raw     []byte // JSON sources only: the value byte for byte
}

type member struct {
	key    string
	rawKey []byte // JSON sources only: the key byte for byte, with its quotes
	at     position
	value  *node
}

func (n *node) member(key string) *member {
	for i := range n.members {
		if n.members[i].key == key {
			return &n.members[i]
		}
	}
	return nil
}

// get returns the value of a member, or nil.
func (n *node) get(key string) *node {
	if m := n.member(key); m != nil {
		return m.value
	}
	return nil
}

func (n *node) keys() []string {
	keys := make([]string, len(n.members))
	for i, m := range n.members {
		keys[i] = m.key
	}
	return keys
}

// is reports whether n is the given string.
func (n *node) is(text string) bool {
	return n != nil && n.kind == textNode && n.text == text
}

// locate finds the place of the value at p below n, or, when it is missing, of the nearest thing around it;
// at is the place of n itself in that case.
func (n *node) locate(at position, p path) position {
	for _, step := range p {
		switch s := step.(type) {
		case string:
			m := n.member(s)
			if m == nil {
				return at
			}
			at, n = m.at, m.value
		case int:
			if s >= len(n.items) {
				return at
			}
			n = n.items[s]
			at = n.at
		}
	}
	return n.at
}

// steps turns the tokens of a JSON Pointer into a path through n.
func (n *node) steps(tokens []string) path {
	var p path
	for _, token := range tokens {
		if n != nil && n.kind == listNode {
			i, err := strconv.Atoi(token)
			if err == nil && i >= 0 && i < len(n.items) {
				p, n = p.with(i), n.items[i]
				continue
			}
		}
		p = p.with(token)
		if n != nil {
			n = n.get(token)
		}
	}
	return p
}

// follow returns the value at p below n, or nil.
func (n *node) follow(p path) *node {
	for _, step := range p {
		if n == nil {
			return nil
		}
		switch s := step.(type) {
		case string:
			n = n.get(s)
		case int:
			if s >= len(n.items) {
				return nil
			}
			n = n.items[s]
		}
	}
	return n
}

// json is the compact JSON form with members in the order written.
func (n *node) json() json.RawMessage {
	return n.appendJSON(nil)
}

func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case boolNode, numberNode:
		return append(b, n.text...)
	case textNode:
		return appendEncoded(b, n.text)
	case listNode:
		b = append(b, '[')
		for i, item := range n.items {
			if i > 0 {
				b = append(b, ',')
			}
			b = item.appendJSON(b)
		}
		return append(b, ']')
	case objectNode:
		b = append(b, '{')
		for i, m := range n.members {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendEncoded(b, m.key), ':')
			b = m.value.appendJSON(b)
		}
		return append(b, '}')
	default:
		return append(b, "null"...)
	}
}

// appendEncoded appends the JSON form of a JSON value; <, > and & stay readable.
func appendEncoded(b []byte, value any) []byte {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // JSON values into a buffer cannot fail
	return append(b, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...)
}

// value is the form the schema library takes, numbers as json.Number.
func (n *node) value() any {
	switch n.kind {
	case boolNode:
		return n.text == "true"
	case numberNode:
		return json.Number(n.text)
	case textNode:
		return n.text
	case listNode:
		items := make([]any, len(n.items))
		for i, item := range n.items {
			items[i] = item.value()
		}
		return items
	case objectNode:
		object := make(map[string]any, len(n.members))
		for _, m := range n.members {
			object[m.key] = m.value.value()
		}
		return object
	default:
		return nil
	}
}

// shownLength is the number of characters of a value that errors quote.
const shownLength = 60

// describe names the value for an error: the string "x", the number 5, a list.
func (n *node) describe() string {
	switch n.kind {
	case boolNode:
		return n.text
	case numberNode:
		return "the number " + shorten(n.text)
	case textNode:
		return "the string " + strconv.Quote(shorten(n.text))
	case listNode:
		return "a list"
	case objectNode:
		return "a mapping"
	default:
		return "nothing (null)"
	}
}

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= shownLength {
		return s
	}
	return string([]rune(s)[:shownLength]) + "…"
}

// parseJSON reads one JSON value. Duplicate members and too deep nesting are reported and make it return what it
// could read; text that is not JSON is reported and gives nil.
func parseJSON(file string, data []byte, report *reporter) *node {
	p := jsonParser{data: data, decoder: json.NewDecoder(bytes.NewReader(data)), report: report}
	p.reached = position{file: file, line: 1, column: 1}
	p.decoder.UseNumber()
	n, err := p.value(nil)
	if err == nil {
		_, err = p.decoder.Token()
		if err == nil {
			err = errors.New("something follows the JSON value")
		}
		if errors.Is(err, io.EOF) {
			return n
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = errors.New("it ends too early")
	}
	offset := p.decoder.InputOffset()
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		offset = max(offset, syntax.Offset-1)
	}
	report.add(p.position(int(offset)), nil, "not valid JSON: %v", err)
	return nil
}

type jsonParser struct {
	data    []byte
	decoder *json.Decoder
	report  *reporter
	offset  int // the byte that reached stands for
	reached position
}

// position advances to the given offset, which never goes back.
func (p *jsonParser) position(offset int) position {
	for p.offset < min(offset, len(p.data)) {
		r, size := utf8.DecodeRune(p.data[p.offset:])
		p.offset += size
		p.reached.column++
		if r == '\n' {
			p.reached.line++
			p.reached.column = 1
		}
	}
	return p.reached
}

// next is the offset of the next token.
func (p *jsonParser) next() int {
	offset := int(p.decoder.InputOffset())
	rest := p.data[min(offset, len(p.data)):]
	return offset + len(rest) - len(bytes.TrimLeft(rest, " \t\r\n:,"))
}

var errTooDeep = fmt.Errorf("nested deeper than %d levels", maxDepth)

func (p *jsonParser) value(where path) (*node, error) {
	if len(where) > maxDepth {
		return nil, errTooDeep
	}
	start := p.next()
	n := &node{at: p.position(start)}
	token, err := p.decoder.Token()
	if err != nil {
		return nil, err
	}
	switch t := token.(type) {
	case bool:
		n.kind, n.text = boolNode, strconv.FormatBool(t)
	case json.Number:
		n.kind, n.text = numberNode, t.String()
	case string:
		n.kind, n.text = textNode, t
	case json.Delim:
		if t == '[' {
			err = p.list(n, where)
		} else {
			err = p.object(n, where)
		}
	}
	if err != nil {
		return nil, err
	}
	n.raw = p.data[start:p.decoder.InputOffset()]
	return n, nil
}

func (p *jsonParser) list(n *node, where path) error {
	n.kind = listNode
	for p.decoder.More() {
		item, err := p.value(where.with(len(n.items)))
		if err != nil {
			return err
		}
		n.items = append(n.items, item)
	}
	_, err := p.decoder.Token()
	return err
}

func (p *jsonParser) object(n *node, where path) error {
	n.kind = objectNode
	seen := map[string]position{}
	for p.decoder.More() {
		start := p.next()
		m := member{at: p.position(start)}
		token, err := p.decoder.Token()
		if err != nil {
			return err
		}
		m.key = token.(string) // the decoder accepts nothing else here
		m.rawKey = p.data[start:p.decoder.InputOffset()]
		if m.value, err = p.value(where.with(m.key)); err != nil {
			return err
		}
		if first, ok := seen[m.key]; ok {
			p.report.add(m.at, where.with(m.key), "is already given at line %d, column %d", first.line, first.column)
			continue
		}
		seen[m.key] = m.at
		n.members = append(n.members, m)
	}
	_, err := p.decoder.Token()
	return err
}
