package catalog

import (
	stdjson "encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/go-json-experiment/json" // tells names apart that differ in case, and refuses duplicates
)

// DecodeAnswer reads the result of an elicitation (MCP 2026-07-28, Elicitation): the action, accept, decline or cancel, and
// the content, nil if there is none.
func DecodeAnswer(result stdjson.RawMessage) (action string, content stdjson.RawMessage, err error) {
	var answer *struct {
		Action  *string            `json:"action"`
		Content stdjson.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(result, &answer); err != nil || answer == nil {
		return "", nil, errors.New("is not a JSON object with an action and a content")
	}
	if answer.Action == nil {
		return "", nil, errors.New(`has no "action"`)
	}
	switch *answer.Action {
	case "accept", "decline", "cancel":
		return *answer.Action, answer.Content, nil
	}
	return "", nil, fmt.Errorf("action %q is not accept, decline or cancel", *answer.Action)
}

// ValidateForm checks the content of an accepted elicitation against the form's requested schema; absent and null
// content count as {}. The error is an *ArgumentError. A schema that is none itself accepts anything: that is not the
// answering client's mistake.
func ValidateForm(schema, content stdjson.RawMessage) error {
	form := parseJSON("", schema, &reporter{})
	if form == nil {
		return nil
	}
	compiled, ok := compile(unreported, nil, form)
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
	var found []violation
	for _, m := range answer.members {
		for _, field := range fields.entries() {
			if m.key != field.key && strings.EqualFold(m.key, field.key) {
				found = append(found, violation{path{m.key}, fmt.Sprintf("%s; did you mean %q?", notAField, field.key)})
			}
		}
	}
	return found
}
