// Package expression evaluates what catalogs say about calls and workflows: CEL expressions, and templates with such
// expressions in them (https://github.com/google/cel-spec/blob/master/doc/langdef.md).
//
// Everything is checked and compiled once. What is compiled is safe for concurrent use, and an evaluation is bounded in
// cost, time and memory, whatever values it gets.
package expression

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/ext"
)

// Bounds of one evaluation. An expression of a person's making needs a thousandth of them.
const (
	maxSource    = 10_000    // characters of an expression
	maxCost      = 1_000_000 // steps, as CEL counts them
	maxTime      = time.Second
	maxMemory    = 1 << 20 // units of 10 bytes
	maxElements  = 50_000  // values in one that CEL measures
	maxNesting   = 250
	maxRegexp    = 1_000
	maxPrecision = 30
	maxResult    = 2 << 20 // bytes of JSON or text: what Temporal takes
)

// sampling is how rarely the memory of loops is measured, which itself takes time.
const (
	sampling       = 16
	interruptCheck = 16
)

// Shape is what is known of a JSON value: the members it can have, with their own shapes. Of nil nothing is known.
type Shape map[string]Shape

// Scope has the variables that expressions may use. It is safe for concurrent use.
type Scope struct {
	env       *cel.Env
	variables map[string]Shape
}

// NewScope returns a scope with the given variables.
func NewScope(variables map[string]Shape) *Scope {
	options := []cel.EnvOption{
		cel.OptionalTypes(),
		cel.CrossTypeNumericComparisons(true), // JSON knows one kind of number
		cel.EnableIdentifierEscapeSyntax(),    // names of JSON members may be anything
		cel.ParserExpressionSizeLimit(maxSource),
		cel.RegexProgramSizeLimit(maxRegexp),
		ext.Strings(ext.StringsMaxPrecision(maxPrecision)),
	}
	options = append(options, bounded()...)
	for name := range variables {
		options = append(options, cel.Variable(name, cel.DynType))
	}
	env, err := cel.NewEnv(options...)
	if err != nil { // only of options that contradict each other
		panic(err)
	}
	return &Scope{env, variables}
}

// Expression is a compiled CEL expression.
type Expression struct {
	label   string // how it is written, for errors
	program cel.Program
}

// String is the expression as it is written.
func (e *Expression) String() string { return e.label }

// Error says why an expression has no value.
type Error struct {
	Expression string
	Reason     string
	Missing    bool // it asks for a member or item that there is not
}

func (e *Error) Error() string { return e.Expression + ": " + e.Reason }

func (e *Expression) fail(format string, args ...any) error {
	return &Error{Expression: e.label, Reason: fmt.Sprintf(format, args...)}
}

// Condition compiles an expression that is true or false. The error is a *[Problem].
func (s *Scope) Condition(source string) (*Expression, error) {
	return s.typed(source, "and a condition is true or false", types.BoolKind)
}

// Number compiles an expression that gives a number. The error is a *[Problem].
func (s *Scope) Number(source string) (*Expression, error) {
	return s.typed(source, "and a number belongs here", types.IntKind, types.UintKind, types.DoubleKind)
}

func (s *Scope) typed(source, want string, kinds ...types.Kind) (*Expression, error) {
	if strings.HasPrefix(strings.TrimSpace(source), opening) {
		return nil, problem("is an expression as a whole; write it without ${ and }")
	}
	ast, err := s.check(source)
	if err != nil {
		return nil, err
	}
	if kind := ast.OutputType().Kind(); kind != types.DynKind && !slices.Contains(kinds, kind) {
		return nil, problem("is of type %s, %s", cel.FormatCELType(ast.OutputType()), want)
	}
	return s.compile(ast, shorten(source))
}

func (s *Scope) compile(ast *cel.Ast, label string) (*Expression, error) {
	program, err := s.env.Program(ast,
		cel.EvalOptions(cel.OptOptimize),
		cel.CostLimit(maxCost),
		cel.InterruptCheckFrequency(interruptCheck),
		cel.MemoryLimit(maxMemory),
		cel.MemoryTracking(
			types.MemoryTrackerSampleInterval(sampling),
			types.MemoryTrackerSizeCalculator(types.NewSizeCalculator(
				types.SizeCalculatorMaxTraversal(maxElements), types.SizeCalculatorMaxDepth(maxNesting)))))
	if err != nil {
		return nil, problem("%v", err)
	}
	return &Expression{label, program}, nil
}

// eval returns the value; the error is an *[Error].
func (e *Expression) eval(values *Values) (ref.Val, error) {
	ctx, cancel := context.WithTimeout(context.Background(), maxTime)
	defer cancel()
	value, _, err := e.program.ContextEval(ctx, values)
	if err == nil {
		return value, nil
	}
	return nil, &Error{e.label, reason(ctx, err), isMissing(err)}
}

var missing = []string{"no such key: ", "index out of bounds: "}

// isMissing goes by the message: the library has no other sign for it.
func isMissing(err error) bool {
	return slices.ContainsFunc(missing, func(prefix string) bool { return strings.HasPrefix(err.Error(), prefix) })
}

func reason(ctx context.Context, err error) string {
	message := err.Error()
	key, noKey := strings.CutPrefix(message, missing[0])
	index, noItem := strings.CutPrefix(message, missing[1])
	switch {
	case noKey:
		return fmt.Sprintf("there is no %q", shorten(key))
	case noItem:
		return fmt.Sprintf("there is no item [%s]", index)
	case ctx.Err() != nil, strings.Contains(message, "limit exceeded"):
		return "takes too much time or memory with these values"
	case strings.HasPrefix(message, "no such overload"):
		return "a value is of another type than it takes"
	}
	return shorten(message)
}

// True evaluates a condition. What asks for a member or item that there is not is false.
func (e *Expression) True(values *Values) (bool, error) {
	value, err := e.eval(values)
	var failed *Error
	if errors.As(err, &failed) && failed.Missing {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	yes, ok := value.(types.Bool)
	if !ok {
		return false, e.fail("is of type %s, and a condition is true or false", value.Type().TypeName())
	}
	return bool(yes), nil
}

// Float evaluates an expression to a finite number.
func (e *Expression) Float(values *Values) (float64, error) {
	value, err := e.eval(values)
	if err != nil {
		return 0, err
	}
	var number float64
	switch n := value.(type) {
	case types.Int:
		number = float64(n)
	case types.Uint:
		number = float64(n)
	case types.Double:
		number = float64(n)
	default:
		return 0, e.fail("is of type %s, and a number belongs here", value.Type().TypeName())
	}
	if math.IsInf(number, 0) || math.IsNaN(number) {
		return 0, e.fail("is not a finite number")
	}
	return number, nil
}

// Text evaluates an expression to text: a string as it is, anything else as compact JSON.
func (e *Expression) Text(values *Values) (string, error) {
	value, err := e.eval(values)
	if err != nil {
		return "", err
	}
	if text, ok := value.(types.String); ok {
		if len(text) > maxResult {
			return "", e.fail(tooLarge)
		}
		return string(text), nil
	}
	encoded, err := e.encode(nil, value)
	return string(encoded), err
}

// JSON evaluates an expression to compact JSON, with members sorted by name.
func (e *Expression) JSON(values *Values) (json.RawMessage, error) {
	return e.appendJSON(nil, values)
}

func (e *Expression) appendJSON(b []byte, values *Values) ([]byte, error) {
	value, err := e.eval(values)
	if err != nil {
		return nil, err
	}
	return e.encode(b, value)
}

func (e *Expression) encode(b []byte, value ref.Val) ([]byte, error) {
	b, err := appendValue(b, value)
	if err != nil {
		return nil, e.fail("%v", err)
	}
	return b, nil
}

// shownLength is the number of characters that errors quote.
const shownLength = 120

func shorten(s string) string {
	if utf8.RuneCountInString(s) <= shownLength {
		return s
	}
	return string([]rune(s)[:shownLength]) + "…"
}
