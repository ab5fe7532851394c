package tasks

import (
	stdjson "encoding/json"
	"errors"
	"fmt"

	"github.com/go-json-experiment/json"

	"taskbridge/mcpbridge/catalog"
)

// checkElicitResult checks an ElicitResult against the elicitation it answers (MCP 2026-07-28, Elicitation).
func checkElicitResult(params, response stdjson.RawMessage) error {
	if err := requireMembers(response, "action"); err != nil {
		return err
	}
	var result struct {
		Action  string             `json:"action"`
		Content stdjson.RawMessage `json:"content"`
	}
	if err := json.Unmarshal(response, &result); err != nil {
		return fmt.Errorf("is not the result of an elicitation: %w", err)
	}
	switch result.Action {
	case "decline", "cancel":
		return nil
	case "accept":
	default:
		return fmt.Errorf("action %q is not accept, decline or cancel", result.Action)
	}
	var form struct {
		Mode            string             `json:"mode"`
		RequestedSchema stdjson.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &form); err != nil || form.Mode == "url" || form.RequestedSchema == nil {
		return nil // not a form, so nothing to compare with
	}
	if result.Content == nil {
		return errors.New(`action is accept but there is no "content" with the form's fields`)
	}
	return catalog.ValidateForm(form.RequestedSchema, result.Content)
}
