package tasks

import (
	"encoding/json"
	"errors"
	"fmt"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// checkResponse reports what keeps a client's response from being the result of request.
func checkResponse(request signals.InputRequest, response json.RawMessage) error {
	switch request.Method {
	case signals.MethodElicit:
		return checkAnswer(request.Params, response)
	case signals.MethodSample:
		return requireMembers(response, "role", "content", "model")
	case signals.MethodListRoots:
		return requireMembers(response, "roots")
	}
	return requireMembers(response)
}

// checkAnswer checks the result of an elicitation against what was asked.
func checkAnswer(params, response json.RawMessage) error {
	action, content, err := catalog.DecodeAnswer(response)
	if err != nil || action != "accept" {
		return err
	}
	var form struct {
		Mode            string          `json:"mode"`
		RequestedSchema json.RawMessage `json:"requestedSchema"`
	}
	if err := json.Unmarshal(params, &form); err != nil || form.Mode == "url" || form.RequestedSchema == nil {
		return nil // not a form, so nothing to compare with
	}
	if content == nil && hasFields(form.RequestedSchema) {
		return errors.New(`action is accept but there is no "content" with the form's fields`)
	}
	return catalog.ValidateForm(form.RequestedSchema, content)
}

// hasFields reports whether a form asks for anything. One that does not is accepted without content too.
func hasFields(schema json.RawMessage) bool {
	var form struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(schema, &form) != nil || len(form.Properties) > 0
}

func requireMembers(response json.RawMessage, names ...string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(response, &members); err != nil || members == nil {
		return errors.New("is not a JSON object")
	}
	for _, name := range names {
		if _, ok := members[name]; !ok {
			return fmt.Errorf("has no %q", name)
		}
	}
	return nil
}
