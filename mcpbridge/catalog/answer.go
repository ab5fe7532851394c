package catalog

import (
	"encoding/json"
	"fmt"
	"strings"
)

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
	found = append(confusable(root, form.get("properties")), validate(compiled, root.value(), root)...)
	return argumentError(found)
}

// confusable finds members that differ from a field of the form in case only. The form's schema says nothing of them, but
// a worker that does not tell cases apart would take them for the field.
func confusable(answer, fields *node) []violation {
	if fields == nil {
		return nil
	}
	var found []violation
	for _, m := range answer.members {
		for _, field := range fields.members {
			if m.key != field.key && strings.EqualFold(m.key, field.key) {
				found = append(found, violation{path{m.key}, fmt.Sprintf("is not a field of this form; did you mean %q?", field.key)})
			}
		}
	}
	return found
}
