package catalog

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Error is one mistake in a catalog or in a tool registered in Go.
type Error struct {
	File         string // "" for a tool registered in Go
	Line, Column int    // counted from 1; 0 when only the file is known
	Path         string // where in the catalog, like tools.deploy.retention; "" for the file as a whole
	Message      string
}

// Error formats the mistake as file:line:column: path: message, leaving out what is not known.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
		}
		b.WriteString(": ")
	}
	if e.Path != "" {
		b.WriteString(e.Path + ": ")
	}
	b.WriteString(e.Message)
	return b.String()
}

// Errors holds every mistake found in one go, so that an author can mend them all at once.
type Errors []*Error

// Error prints one mistake a line.
func (es Errors) Error() string {
	lines := make([]string, len(es))
	for i, e := range es {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap gives the single mistakes to errors.Is and errors.As.
func (es Errors) Unwrap() []error {
	errs := make([]error, len(es))
	for i, e := range es {
		errs[i] = e
	}
	return errs
}

// orNil avoids the non-nil error interface around an empty list.
func (es Errors) orNil() error {
	if len(es) == 0 {
		return nil
	}
	return es
}

// position is a place in a file; line and column count from 1, the column in characters.
type position struct {
	file         string
	line, column int
}

func (p position) String() string {
	return fmt.Sprintf("%s:%d:%d", p.file, p.line, p.column)
}

// path leads from the root of a document to a value: a string names a member, an int an item of a list.
type path []any

// with returns a path one step longer that shares nothing with p.
func (p path) with(step any) path {
	return append(slices.Clip(p), step)
}

// join returns the path that leads on by q, sharing nothing with p.
func (p path) join(q path) path {
	return append(slices.Clip(p), q...)
}

var plainStep = regexp.MustCompile(`^[$\w-]+$`)

// String is the form used in catalog errors: tools.deploy.icons[0].src, with unusual names quoted.
func (p path) String() string {
	var b strings.Builder
	for i, step := range p {
		if n, ok := step.(int); ok {
			fmt.Fprintf(&b, "[%d]", n)
			continue
		}
		name := step.(string)
		if !plainStep.MatchString(name) {
			name = strconv.Quote(name)
		}
		if i > 0 {
			b.WriteByte('.')
		}
		b.WriteString(name)
	}
	return b.String()
}

// pointer is the JSON Pointer (RFC 6901) form used in argument errors.
func (p path) pointer() string {
	var b strings.Builder
	for _, step := range p {
		b.WriteString("/" + pointerEscapes.Replace(fmt.Sprint(step)))
	}
	return b.String()
}

var pointerEscapes = strings.NewReplacer("~", "~0", "/", "~1")

// reporter gathers mistakes. One and the same mistake seen through several aliases of an anchor is kept once.
type reporter struct {
	errors Errors
	seen   map[Error]bool
	marks  []path // values that are wrong, so that nothing more is said about them
}

func (r *reporter) add(at position, p path, format string, args ...any) {
	r.record(Error{at.file, at.line, at.column, p.String(), fmt.Sprintf(format, args...)})
}

func (r *reporter) record(e Error) {
	same := e
	same.Path = ""
	if e.File != "" && r.seen[same] {
		return
	}
	if r.seen == nil {
		r.seen = map[Error]bool{}
	}
	r.seen[same] = true
	r.errors = append(r.errors, &e)
}

// take adds mistakes that another reporter gathered.
func (r *reporter) take(errs Errors) {
	for _, e := range errs {
		r.record(*e)
	}
}

// mark notes that the value at p is wrong.
func (r *reporter) mark(p path) {
	r.marks = append(r.marks, p)
}

// marked reports whether the value at p, one around it or one in it is wrong.
func (r *reporter) marked(p path) bool {
	return slices.ContainsFunc(r.marks, func(m path) bool {
		n := min(len(m), len(p))
		return slices.Equal(m[:n], p[:n])
	})
}
