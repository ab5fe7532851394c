package main

import (
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	defaultsForm = `{"type": "object", "properties": {
		"name": {"type": "string", "default": "John Doe"},
		"age": {"type": "integer", "default": 30},
		"score": {"type": "number", "default": 95.5},
		"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
		"verified": {"type": "boolean", "default": true}
	}}`
	enumsForm = `{"type": "object", "properties": {
		"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
		"titledSingle": {"type": "string", "oneOf": [
			{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]},
		"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["First", "Second", "Third"]},
		"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
		"titledMulti": {"type": "array", "items": {"anyOf": [
			{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}, {"const": "value3", "title": "Third"}]}}
	}}`
	contactForm = `{"type": "object", "required": ["username", "email"], "properties": {
		"username": {"type": "string"},
		"email": {"type": "string"}
	}}`
)

// addDialogues adds the tools and the prompt which ask before they answer. Sessions of protocol 2025-11-25, which have no
// input-required results (SEP-2322), are served as well: the SDK sends them the questions of one round as requests.
func addDialogues(server *mcp.Server) {
	seal := newSealer()
	for _, d := range dialogues() {
		d.seal = seal
		server.AddTool(d.tool(), d.call)
	}
	d := dialogue{
		name:        "test_input_required_result_prompt",
		description: "Asks for a context and puts it into the prompt.",
		rounds:      fixed(round{"user_context": field("What context should the prompt use?", "context", "string")}),
		reply:       all("Context: %s", "user_context"),
		seal:        seal,
	}
	server.AddPrompt(&mcp.Prompt{Name: d.name, Description: d.description}, d.prompt)
}

func dialogues() []dialogue {
	name := field("What is your name?", "name", "string")
	confirm := field("Please confirm", "ok", "boolean")
	return []dialogue{{
		name:        "test_input_required_result_elicitation",
		description: "Asks for a name and greets.",
		rounds:      fixed(round{"user_name": name}),
		reply:       all("Hello, %s!", "user_name"),
	}, {
		name:        "test_input_required_result_sampling",
		description: "Asks the client's model for a capital.",
		rounds:      fixed(round{"capital_question": completion("What is the capital of France?")}),
		reply:       all("%s", "capital_question"),
	}, {
		name:        "test_input_required_result_list_roots",
		description: "Asks for the client's roots and lists them.",
		rounds:      fixed(round{"client_roots": roots()}),
		reply:       all("Roots: %s", "client_roots"),
	}, {
		name:        "test_input_required_result_request_state",
		description: "Asks for a confirmation and wants its state back.",
		stateful:    true,
		rounds:      fixed(round{"confirm": confirm}),
		reply:       all("state-ok, confirmed: %s", "confirm"),
	}, {
		name:        "test_input_required_result_tampered_state",
		description: "Asks for a confirmation and refuses a state which it did not issue.",
		stateful:    true,
		rounds:      fixed(round{"confirm": confirm}),
		reply:       all("state-ok, confirmed: %s", "confirm"),
	}, {
		name:        "test_input_required_result_multiple_inputs",
		description: "Asks three kinds of questions at once.",
		stateful:    true,
		rounds: fixed(round{
			"user_name": name, "greeting": completion("Generate a greeting"), "client_roots": roots(),
		}),
		reply: all("%s (said to %s, who shares %s)", "greeting", "user_name", "client_roots"),
	}, {
		name:        "test_input_required_result_multi_round",
		description: "Asks two questions, one after the other.",
		stateful:    true,
		rounds: fixed(
			round{"step1": field("Step 1: What is your name?", "name", "string")},
			round{"step2": field("Step 2: What is your favorite color?", "color", "string")},
		),
		reply: all("%s likes %s.", "step1", "step2"),
	}, {
		name:        "test_input_required_result_capabilities",
		description: "Asks only what the client has declared it can answer.",
		lenient:     true,
		rounds: fixed(round{
			"user_name": name, "greeting": completion("Generate a greeting"), "client_roots": roots(),
		}),
		reply: func(answers map[string]string) string { return fmt.Sprintf("%d answers", len(answers)) },
	}, {
		name:        "test_missing_capability",
		description: "Cannot do without sampling.",
		rounds:      fixed(round{"thought": completion("Say something")}),
		reply:       all("%s", "thought"),
	}, {
		name:        "test_streaming_elicitation",
		description: "Asks for a name on the response stream.",
		rounds:      fixed(round{"user_name": name}),
		reply:       all("Hello, %s!", "user_name"),
	}, {
		name:        "test_sampling",
		description: "Asks the client's model with that prompt.",
		argument:    "prompt",
		rounds:      func(prompt string) []round { return []round{{"answer": completion(prompt)}} },
		reply:       all("LLM response: %s", "answer"),
	}, {
		name:        "test_elicitation",
		description: "Asks for a user name and an address with that message.",
		argument:    "message",
		rounds:      func(message string) []round { return []round{{"contact": form(message, contactForm)}} },
		reply:       all("User response: %s", "contact"),
	}, {
		name:        "test_elicitation_sep1034_defaults",
		description: "Asks with a form whose fields have defaults (SEP-1034).",
		rounds:      fixed(round{"profile": form("Please check your profile", defaultsForm)}),
		reply:       all("Elicitation completed: %s", "profile"),
	}, {
		name:        "test_elicitation_sep1330_enums",
		description: "Asks with a form of all kinds of choices (SEP-1330).",
		rounds:      fixed(round{"choices": form("Please choose", enumsForm)}),
		reply:       all("Elicitation completed: %s", "choices"),
	}}
}

// fixed is for a dialogue whose rounds do not depend on its argument.
func fixed(rounds ...round) func(string) []round {
	return func(string) []round { return rounds }
}

// all returns a reply which puts the answers to these keys into the format.
func all(format string, keys ...string) func(map[string]string) string {
	return func(answers map[string]string) string {
		values := make([]any, len(keys))
		for i, key := range keys {
			values[i] = answers[key]
		}
		return fmt.Sprintf(format, values...)
	}
}

// field asks for one required value; the answer is that value.
func field(message, name, kind string) question {
	schema := fmt.Sprintf(`{"type": "object", "properties": {%q: {"type": %q}}, "required": [%q]}`, name, kind, name)
	q := form(message, schema)
	q.read = func(response mcp.InputResponse) (string, bool) {
		result, ok := response.(*mcp.ElicitResult)
		if !ok || result.Action != "accept" {
			return "", false
		}
		switch value := result.Content[name].(type) {
		case string:
			return value, kind == "string"
		case bool:
			return fmt.Sprint(value), kind == "boolean"
		}
		return "", false
	}
	return q
}

// form asks with a schema; the answer names the user's action and what the form held.
func form(message, schema string) question {
	return question{
		capability: "elicitation",
		request: func() mcp.InputRequest {
			return &mcp.ElicitParams{Message: message, RequestedSchema: json.RawMessage(schema)}
		},
		read: func(response mcp.InputResponse) (string, bool) {
			result, ok := response.(*mcp.ElicitResult)
			if !ok {
				return "", false
			}
			content, err := json.Marshal(result.Content)
			return fmt.Sprintf("action=%s, content=%s", result.Action, content), err == nil
		},
	}
}
