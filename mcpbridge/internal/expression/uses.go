package expression

import (
	"slices"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/ast"
	"cel.dev/cel-go/common/operators"
	"cel.dev/cel-go/common/types"
)

// uses are the variables and members that an expression names.
type uses struct {
	variables []string   // without those that the expression itself introduces
	paths     [][]string // a variable and the names that lead from it to a member
}

func usesOf(parsed *cel.Ast) uses {
	var found uses
	found.visit(parsed.NativeRep().Expr(), nil)
	return found
}

// visit walks through an expression in which the given variables are its own.
func (u *uses) visit(e ast.Expr, own []string) {
	if path := pathOf(e); len(path) > 0 && !slices.Contains(own, path[0]) {
		u.variables = append(u.variables, path[0])
		if len(path) > 1 {
			u.paths = append(u.paths, path)
		}
	}
	switch e.Kind() {
	case ast.SelectKind:
		u.visit(e.AsSelect().Operand(), own)
	case ast.CallKind:
		if call := e.AsCall(); call.IsMemberFunction() {
			u.visit(call.Target(), own)
		}
		u.visitAll(e.AsCall().Args(), own)
	case ast.ListKind:
		u.visitAll(e.AsList().Elements(), own)
	case ast.MapKind:
		for _, entry := range e.AsMap().Entries() {
			u.visit(entry.AsMapEntry().Key(), own)
			u.visit(entry.AsMapEntry().Value(), own)
		}
	case ast.StructKind:
		for _, field := range e.AsStruct().Fields() {
			u.visit(field.AsStructField().Value(), own)
		}
	case ast.ComprehensionKind:
		u.loop(e.AsComprehension(), own)
	}
}

func (u *uses) visitAll(es []ast.Expr, own []string) {
	for _, e := range es {
		u.visit(e, own)
	}
}

func (u *uses) loop(c ast.ComprehensionExpr, own []string) {
	u.visit(c.IterRange(), own)
	u.visit(c.AccuInit(), own)
	inside := append(slices.Clip(own), c.IterVar(), c.IterVar2(), c.AccuVar())
	u.visitAll([]ast.Expr{c.LoopCondition(), c.LoopStep(), c.Result()}, inside)
}

// pathOf returns the variable and the names that lead to a member, as in args.a["b"].?c, or nil.
func pathOf(e ast.Expr) []string {
	switch e.Kind() {
	case ast.IdentKind:
		return []string{e.AsIdent()}
	case ast.SelectKind:
		return below(e.AsSelect().Operand(), e.AsSelect().FieldName())
	case ast.CallKind:
		call := e.AsCall()
		if !slices.Contains([]string{operators.Index, operators.OptIndex, operators.OptSelect}, call.FunctionName()) {
			return nil
		}
		if name := call.Args()[1]; name.Kind() == ast.LiteralKind {
			if text, ok := name.AsLiteral().(types.String); ok {
				return below(call.Args()[0], string(text))
			}
		}
	}
	return nil
}

func below(operand ast.Expr, name string) []string {
	path := pathOf(operand)
	if path == nil {
		return nil
	}
	return append(slices.Clip(path), name)
}
