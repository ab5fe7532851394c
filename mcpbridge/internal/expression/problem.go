package expression

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"cel.dev/cel-go/cel"

	"taskbridge/mcpbridge/internal/wording"
)

// Problem is something wrong with an expression or a template, whatever its values.
type Problem struct {
	Path    []any // leads to it in a template: strings name members, ints items of lists
	Message string
	Unknown string // the variable that there is not, if that is the problem
}

func (p *Problem) Error() string { return p.Message }

func problem(format string, args ...any) *Problem {
	return &Problem{Message: fmt.Sprintf(format, args...)}
}

// check parses and type-checks an expression.
func (s *Scope) check(source string) (*cel.Ast, error) {
	if strings.TrimSpace(source) == "" {
		return nil, problem("is empty; write an expression")
	}
	ast, issues := s.env.Parse(source)
	if issues.Err() != nil {
		return nil, s.issue(source, issues)
	}
	if p := s.unknown(usesOf(ast)); p != nil {
		return nil, p
	}
	ast, issues = s.env.Check(ast)
	if issues.Err() != nil {
		return nil, s.issue(source, issues)
	}
	return ast, nil
}

// unknown finds members that no value can have.
func (s *Scope) unknown(u uses) *Problem {
	for _, path := range u.paths {
		shape, ok := s.variables[path[0]]
		if !ok {
			continue
		}
		at := path[0]
		for _, name := range path[1:] {
			if shape == nil {
				break
			}
			below, ok := shape[name]
			if !ok {
				return problem("%s", unknownMember(at, name, slices.Sorted(maps.Keys(shape))))
			}
			at, shape = at+"."+name, below
		}
	}
	return nil
}

func unknownMember(of, name string, known []string) string {
	if len(known) == 0 {
		return fmt.Sprintf("%s has no %q, nor anything else", of, name)
	}
	if near := wording.Nearest(name, known); near != "" {
		return fmt.Sprintf("%s has no %q; did you mean %q?", of, name, near)
	}
	return fmt.Sprintf("%s has no %q; it has %s", of, name, wording.List(known, "and"))
}

var (
	undeclared = regexp.MustCompile(`^undeclared reference to '(.*?)'`)
	overload   = regexp.MustCompile(`^found no matching overload for '(.*)' applied to '(.*)'$`)
	expecting  = regexp.MustCompile(` expecting .*$`)
	unexpected = regexp.MustCompile(`^(?:mismatched input|extraneous input|no viable alternative at input) '(.*)'$`)
	unreadable = regexp.MustCompile(`^token recognition error at: '(.*)'$`)
	identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*$`)
)

// issue words the first complaint of the library; the others tend to follow from it.
func (s *Scope) issue(source string, issues *cel.Issues) *Problem {
	errs := issues.Errors()
	if len(errs) == 0 {
		return problem("%v", issues.Err())
	}
	first := errs[0]
	if m := undeclared.FindStringSubmatch(first.Message); m != nil {
		return s.undeclared(source, m[1])
	}
	return problem("%s: %s", place(source, first.Location.Line(), first.Location.Column()), complaint(first.Message))
}

// undeclared tells variables from functions.
func (s *Scope) undeclared(source, name string) *Problem {
	if ast, issues := s.env.Parse(source); issues.Err() == nil && slices.Contains(usesOf(ast).variables, name) {
		p := problem("%s", wording.Unknown(fmt.Sprintf("variable %q", name), name, slices.Sorted(maps.Keys(s.variables))))
		p.Unknown = name
		return p
	}
	known := slices.DeleteFunc(slices.Sorted(maps.Keys(s.env.Functions())), func(f string) bool { return !identifier.MatchString(f) })
	if near := wording.Nearest(name, known); near != "" {
		return problem("unknown function %q; did you mean %q?", name, near)
	}
	return problem("unknown function %q; those of CEL and its strings extension are known", name)
}

// complaint words a message of the library.
func complaint(message string) string {
	if m := overload.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("%s does not take %s", operator(m[1]), strings.Trim(m[2], "()"))
	}
	syntax, ok := strings.CutPrefix(message, "Syntax error: ")
	if !ok {
		return message
	}
	syntax = expecting.ReplaceAllString(syntax, "")
	if m := unexpected.FindStringSubmatch(syntax); m != nil {
		if m[1] == "<EOF>" {
			return "the expression ends too early"
		}
		return fmt.Sprintf("unexpected %q", m[1])
	}
	m := unreadable.FindStringSubmatch(syntax)
	switch {
	case m != nil && strings.TrimSpace(m[1]) == "=":
		return "= does not compare; write =="
	case m != nil:
		return fmt.Sprintf("cannot read %s; is a quote missing?", m[1])
	}
	return strings.ReplaceAll(syntax, "'<EOF>'", "the end")
}

// operator turns the library's names of operators, such as _+_, into what is written.
func operator(name string) string {
	return strings.Trim(strings.ReplaceAll(name, "_", ""), "@")
}

func place(source string, line, column int) string {
	if strings.Contains(strings.TrimSpace(source), "\n") {
		return fmt.Sprintf("line %d, character %d", line, column+1)
	}
	return fmt.Sprintf("character %d", column+1)
}
