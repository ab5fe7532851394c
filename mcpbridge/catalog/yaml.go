package catalog

import (
	"bytes"
	"errors"
	"io"
	"math/big"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"
)

// maxAliased bounds how many values the aliases of one file may expand to: enough for any shared defaults, and the
// end of a "billion laughs".
const maxAliased = 100_000

// shownSteps is how much of a path that is too long is shown.
const shownSteps = 4

// parseYAML reads the one document of a YAML file. It reports every mistake and returns nil when there is nothing to
// go on with; shape tells the author of an empty file what belongs in it. Aliases and merge keys are resolved in the
// result.
func parseYAML(file string, data []byte, shape string, report *reporter) *node {
	document := loadYAML(file, data, shape, report)
	if document == nil {
		return nil
	}
	b := yamlBuilder{file: file, report: report, open: map[*yaml.Node]bool{}}
	root := b.build(document, nil)
	if b.exhausted {
		report.add(position{file, document.Line, document.Column}, nil,
			"the aliases expand to more than %d values; write fewer or smaller anchors", maxAliased)
		return nil
	}
	return root
}

// loadYAML returns the root value of the document, or nil.
func loadYAML(file string, data []byte, shape string, report *reporter) *yaml.Node {
	if at, ok := badCharacter(file, data); ok {
		report.add(at, nil, "not valid YAML: a control character or a byte that is not UTF-8")
		return nil
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		report.add(position{file: file}, nil, "reading YAML: %v", err)
		return nil
	}
	var first, second yaml.Node
	err = loader.Load(&first)
	if errors.Is(err, io.EOF) || err == nil && len(first.Content) == 0 {
		report.add(position{file, 1, 1}, nil, "the file is empty; %s", shape)
		return nil
	}
	if err == nil {
		err = loader.Load(&second)
		if errors.Is(err, io.EOF) {
			return first.Content[0]
		}
	}
	if err != nil {
		reportSyntax(file, data, err, report)
		return nil
	}
	report.add(position{file, second.Line, second.Column}, nil,
		`a second YAML document starts here; keep one document a file and remove the "---"`)
	return nil
}

// badCharacter finds what the YAML reader would reject without telling where.
func badCharacter(file string, data []byte) (position, bool) {
	at := position{file, 1, 1}
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		switch {
		case r == '\n':
			at.line, at.column = at.line+1, 0
		case r == utf8.RuneError && size == 1, r < ' ' && r != '\t' && r != '\r', r == 0x7f:
			return at, true
		}
		at.column++
		data = data[size:]
	}
	return at, false
}

func reportSyntax(file string, data []byte, err error, report *reporter) {
	at := position{file, 1, 1}
	message := err.Error()
	var load *yaml.LoadError
	if errors.As(err, &load) {
		message = load.Message
		if load.ContextMsg != "" {
			message += " " + load.ContextMsg
		}
		if load.Mark.Line > 0 {
			at.line, at.column = load.Mark.Line, load.Mark.Column
		}
		if load.ContextMark.Line > 0 && load.ContextMark.Line != load.Mark.Line {
			message += " that starts at line " + strconv.Itoa(load.ContextMark.Line)
		}
	}
	lines := bytes.Split(data, []byte("\n"))
	if at.line <= len(lines) && bytes.HasPrefix(lines[at.line-1], []byte("\t")) {
		message = "the line is indented with a tab; YAML wants spaces"
	}
	report.add(at, nil, "not valid YAML: %s", message)
}

// yamlBuilder turns YAML nodes into nodes.
type yamlBuilder struct {
	file      string
	report    *reporter
	open      map[*yaml.Node]bool // anchors whose aliases are being expanded
	aliased   int                 // values built so far through aliases
	exhausted bool
}

func (b *yamlBuilder) build(y *yaml.Node, where path) *node {
	n := &node{at: b.position(y)}
	if len(b.open) > 0 {
		b.aliased++
	}
	switch {
	case b.exhausted || b.aliased > maxAliased:
		b.exhausted = true
	case len(where) > maxDepth:
		b.fail(n, where[:shownSteps], "nested deeper than %d levels", maxDepth)
	case y.Kind == yaml.AliasNode:
		return b.alias(n, y, where)
	case y.Kind == yaml.ScalarNode:
		b.scalar(n, y, where)
	case y.Kind == yaml.SequenceNode && y.ShortTag() == "!!seq":
		n.kind = listNode
		for i, item := range y.Content {
			n.items = append(n.items, b.build(item, where.with(i)))
		}
	case y.Kind == yaml.MappingNode && y.ShortTag() == "!!map":
		b.mapping(n, y, where)
	default:
		b.fail(n, where, "the tag %s has no JSON form; remove it", y.ShortTag())
	}
	return n
}

func (b *yamlBuilder) position(y *yaml.Node) position {
	return position{b.file, y.Line, y.Column}
}

func (b *yamlBuilder) fail(n *node, where path, format string, args ...any) {
	b.report.mark(where)
	b.report.add(n.at, where, format, args...)
}

func (b *yamlBuilder) alias(n *node, y *yaml.Node, where path) *node {
	if b.open[y.Alias] {
		b.fail(n, where, "the anchor %q contains itself", y.Value)
		return n
	}
	b.open[y.Alias] = true
	defer delete(b.open, y.Alias)
	return b.build(y.Alias, where)
}

func (b *yamlBuilder) scalar(n *node, y *yaml.Node, where path) {
	n.text = y.Value
	tag := y.ShortTag()
	if y.Style == 0 && jsonNumberForm.MatchString(y.Value) {
		tag = "!!float" // the library takes numbers beyond float64 for strings
	}
	switch tag {
	case "!!str", "!!timestamp", "!!merge":
		n.kind = textNode
	case "!!null":
		n.kind = nullNode
	case "!!bool":
		n.kind, n.text = boolNode, strings.ToLower(y.Value)
		if n.text != "true" && n.text != "false" {
			b.fail(n, where, "%q is not a boolean; use true or false", y.Value)
		}
	case "!!int", "!!float":
		number, problem := jsonNumber(y.Value)
		if problem != "" {
			b.fail(n, where, "%s", problem)
		}
		n.kind, n.text = numberNode, number
	default:
		b.fail(n, where, "the tag %s has no JSON form; remove it", y.ShortTag())
	}
}

var (
	jsonNumberForm = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)
	leadingZero    = regexp.MustCompile(`^0[0-9]`)
	bareDot        = regexp.MustCompile(`\.([eE]|$)`)
)

// jsonNumber writes a YAML number as JSON without changing its value, or says why that is impossible.
func jsonNumber(text string) (number, problem string) {
	digits := strings.ReplaceAll(strings.TrimPrefix(text, "+"), "_", "")
	sign := ""
	if rest, negative := strings.CutPrefix(digits, "-"); negative {
		sign, digits = "-", rest
	}
	if len(digits) > 2 && digits[0] == '0' && strings.ContainsRune("xob", rune(digits[1])) {
		if i, ok := new(big.Int).SetString(digits, 0); ok {
			return sign + i.String(), ""
		}
	}
	if leadingZero.MatchString(digits) {
		return "0", text + " starts with 0, which is octal to some YAML readers and decimal to others; " +
			"quote it if it is text, else drop the 0 or write 0o for octal"
	}
	if strings.HasPrefix(digits, ".") {
		digits = "0" + digits
	}
	number = sign + bareDot.ReplaceAllString(digits, ".0$1")
	if !jsonNumberForm.MatchString(number) {
		return "0", text + " has no JSON form; NaN, infinity and other words for numbers cannot be passed on"
	}
	return number, ""
}

func (b *yamlBuilder) mapping(n *node, y *yaml.Node, where path) {
	n.kind = objectNode
	written := writtenKeys(y)
	seen := map[string]position{}
	for i := 0; i+1 < len(y.Content); i += 2 {
		key, value := resolve(y.Content[i]), y.Content[i+1]
		m := member{key: key.Value, at: b.position(y.Content[i])}
		if key.Kind != yaml.ScalarNode {
			b.report.add(m.at, where, "a key must be a string, not a list or mapping")
			continue
		}
		if first, ok := seen[m.key]; ok {
			b.report.add(m.at, where.with(m.key), "is already declared at %v", first)
			continue
		}
		seen[m.key] = m.at
		if key.ShortTag() == "!!merge" {
			for _, source := range mergeSources(value) {
				b.merge(n, b.build(source, where), written, where)
			}
			continue
		}
		b.checkKey(key, m.at, where)
		m.value = b.build(value, where.with(m.key))
		n.members = append(n.members, m)
	}
}

// checkKey rejects keys that YAML reads as something else than a string; the text is used all the same, to find the
// mistakes below it.
func (b *yamlBuilder) checkKey(key *yaml.Node, at position, where path) {
	what := ""
	switch key.ShortTag() {
	case "!!str", "!!timestamp":
		return
	case "!!int", "!!float":
		what = "a number"
	case "!!bool":
		what = "a boolean"
	case "!!null":
		what = "null"
	default:
		what = "tagged " + key.ShortTag()
	}
	b.report.add(at, where, "the key %s is %s and keys are strings; write %q", key.Value, what, key.Value)
}

// merge adds the members that a merge key (<<) contributes: those not written in the mapping itself, the first source
// winning. The source was built at where, so that its mistakes count as those of the members it contributes.
func (b *yamlBuilder) merge(n, source *node, written map[string]bool, where path) {
	if source.kind != objectNode && !b.report.marked(where) {
		b.report.add(source.at, where.with("<<"), "expected a mapping to merge, found %s", source.describe())
	}
	for _, m := range source.members {
		if !written[m.key] && n.member(m.key) == nil {
			n.members = append(n.members, m)
		}
	}
}

// mergeSources gives what a merge key merges: one mapping or a list of them.
func mergeSources(value *yaml.Node) []*yaml.Node {
	if value.Kind == yaml.SequenceNode {
		return value.Content
	}
	return []*yaml.Node{value}
}

func writtenKeys(y *yaml.Node) map[string]bool {
	keys := map[string]bool{}
	for i := 0; i < len(y.Content); i += 2 {
		keys[resolve(y.Content[i]).Value] = true
	}
	return keys
}

func resolve(y *yaml.Node) *yaml.Node {
	if y.Kind == yaml.AliasNode {
		return y.Alias
	}
	return y
}
