package catalog

import "encoding/json"

// ValidateForm checks the content of an accepted elicitation against the form's requested schema; absent and null
// content count as {}. The error is an *ArgumentError. A schema that is none itself accepts anything: that is not the
// answering client's mistake.
func ValidateForm(schema, content json.RawMessage) error {
	form := parseJSON("", schema, &reporter{})
	if form == nil {
		return nil
	}
	compiled, ok := compile(check{fail: func(path, string, ...any) {}}, nil, form)
	if !ok {
		return nil
	}
	root, found := parseArguments(content)
	if root == nil || len(found) > 0 {
		return argumentError(found)
	}
	return argumentError(validate(compiled, root.value(), root))
}
