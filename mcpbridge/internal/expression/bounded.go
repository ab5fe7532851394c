package expression

import (
	"strings"
	"unicode/utf8"

	"cel.dev/cel-go/cel"
	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"
)

// bounded redefines the functions whose results can be larger by far than what they are given: the library looks at the
// size of a result when that is there already.
func bounded() []cel.EnvOption {
	text, list := cel.StringType, cel.ListType(cel.StringType)
	return []cel.EnvOption{
		cel.Function("replace",
			cel.MemberOverload("string_replace_string_string", []*cel.Type{text, text, text}, text,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val {
					return replace(args[0].(types.String), args[1].(types.String), args[2].(types.String), -1)
				})),
			cel.MemberOverload("string_replace_string_string_int", []*cel.Type{text, text, text, cel.IntType}, text,
				cel.FunctionBinding(func(args ...ref.Val) ref.Val {
					return replace(args[0].(types.String), args[1].(types.String), args[2].(types.String), args[3].(types.Int))
				}))),
		cel.Function("join",
			cel.MemberOverload("list_join_string", []*cel.Type{list, text}, text,
				cel.BinaryBinding(func(list, separator ref.Val) ref.Val {
					return join(list.(traits.Lister), string(separator.(types.String)))
				}))),
	}
}

var errVal = types.NewErrFromString(tooLarge)

// replace replaces the first occurrences of old, all of them if most is negative.
func replace(text, old, by types.String, most types.Int) ref.Val {
	found := strings.Count(string(text), string(old))
	if old == "" {
		found = utf8.RuneCountInString(string(text)) + 1
	}
	if most >= 0 {
		found = min(found, int(most))
	}
	if len(text)+found*len(by) > maxResult {
		return errVal
	}
	return types.String(strings.Replace(string(text), string(old), string(by), found))
}

func join(list traits.Lister, separator string) ref.Val {
	var b strings.Builder
	for it, first := list.Iterator(), true; it.HasNext() == types.True; first = false {
		item, ok := it.Next().(types.String)
		if !ok {
			return types.NewErrFromString("join takes a list of strings")
		}
		if !first {
			b.WriteString(separator)
		}
		b.WriteString(string(item))
		if b.Len() > maxResult {
			return errVal
		}
	}
	return types.String(b.String())
}
