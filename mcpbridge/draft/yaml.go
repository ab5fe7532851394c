package draft

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

func mapping() *yaml.Node { return &yaml.Node{Kind: yaml.MappingNode} }

// put adds a member to a mapping.
func put(m *yaml.Node, name string, v *yaml.Node) { m.Content = append(m.Content, text(name), v) }

// text is a scalar that stays text, quoted where YAML would take it for something else.
func text(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }

// encode is the scalar of a number or a truth value.
func encode[T bool | int32 | float64](v T) *yaml.Node {
	var n yaml.Node
	_ = n.Encode(v) // these always can be
	return &n
}

// texts is a list on one line.
func texts(list []string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.SequenceNode, Style: yaml.FlowStyle}
	for _, s := range list {
		n.Content = append(n.Content, text(s))
	}
	return n
}

// page is YAML in the making.
type page struct {
	out    strings.Builder
	indent string
	err    error
}

// comment writes each line as a comment.
func (p *page) comment(text string) {
	p.lines("# ", text)
}

// field writes a member of the mapping at this indentation.
func (p *page) field(name string, v *yaml.Node) { p.write("", name, v) }

// suggest writes a member as a comment.
func (p *page) suggest(name string, v *yaml.Node) { p.write("# ", name, v) }

func (p *page) write(prefix, name string, v *yaml.Node) {
	m := mapping()
	put(m, name, v)
	data, err := yaml.Dump(m, yaml.WithIndent(2), yaml.WithLineWidth(-1))
	if err != nil {
		p.err = err
		return
	}
	p.lines(prefix, string(data))
}

func (p *page) lines(prefix, text string) {
	for line := range strings.SplitSeq(strings.TrimRight(text, "\n"), "\n") {
		p.out.WriteString(strings.TrimRight(p.indent+prefix+line, " ") + "\n")
	}
}
