package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"taskbridge/internal/mcpclient"
)

// methodElicit is the one input request that a person can answer; a terminal has no model and no roots.
const methodElicit = "elicitation/create"

// answerForms explains the values of KEY=JSON.
const answerForms = `KEY is a question's key, or its stem before the final -N to answer every question of that name.
JSON is the form's content, such as '{"confirm":true}', or a whole result, such as '{"action":"decline"}', or one of the
words accept (the form's defaults), decline, cancel.`

// givenAnswers are answers from the command line, by key or stem of a key.
type givenAnswers map[string]string

func parseAnswers(pairs []string) (givenAnswers, error) {
	answers := givenAnswers{}
	for _, pair := range pairs {
		key, value, ok := strings.Cut(pair, "=")
		if !ok || key == "" {
			return nil, usageErrorf(`answer %q: write KEY=JSON, such as confirm='{"confirm":true}' or confirm=decline`, pair)
		}
		if _, twice := answers[key]; twice {
			return nil, usageErrorf("there are two answers to %s", key)
		}
		if err := checkAnswer(value); err != nil {
			return nil, usageErrorf("answer to %s: %w", key, err)
		}
		answers[key] = value
	}
	return answers, nil
}

func checkAnswer(value string) error {
	if isAction(value) {
		return nil
	}
	if !json.Valid([]byte(value)) {
		return fmt.Errorf("%s is neither JSON nor accept, decline or cancel", value)
	}
	if value[0] != '{' {
		return fmt.Errorf(`%s must be an object, such as {"confirm":true}, or accept, decline or cancel`, value)
	}
	return nil
}

func isAction(word string) bool { return word == accept || word == decline || word == cancel }

// to is what was given for a key: under the key itself, else under its stem.
func (g givenAnswers) to(key string) (string, bool) {
	if value, ok := g[key]; ok {
		return value, true
	}
	value, ok := g[stem(key)]
	return value, ok
}

// stem is a key without its final -N: a question that is asked again has the same stem under another key. What the catalog
// asks may have an activity's ID for N, and a part of the run ID after it.
func stem(key string) string { return numbered.ReplaceAllString(key, "") }

var numbered = regexp.MustCompile(`-([0-9]+|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12})(-[0-9a-f]{8})?$`)

// answer makes the response to a request from a given value.
func answer(value string, request mcpclient.Request) (json.RawMessage, error) {
	if request.Method != methodElicit {
		return json.RawMessage(value), nil
	}
	question, err := parseElicitation(request.Params)
	if err != nil {
		return nil, err
	}
	switch {
	case value == accept:
		result, err := question.acceptDefaults()
		if err != nil {
			return nil, fmt.Errorf("accept is not enough: %w", err)
		}
		return json.Marshal(result)
	case isAction(value):
		return json.Marshal(elicitResult{Action: value})
	case isElicitResult([]byte(value)):
		return json.RawMessage(value), nil
	}
	return slices.Concat([]byte(`{"action":"accept","content":`), []byte(value), []byte("}")), nil
}

// isElicitResult tells a whole result from a form's content, which may have a field named action too.
func isElicitResult(value []byte) bool {
	var result struct {
		Action  string          `json:"action"`
		Content json.RawMessage `json:"content"`
		Meta    json.RawMessage `json:"_meta"`
	}
	strict := json.NewDecoder(bytes.NewReader(value))
	strict.DisallowUnknownFields()
	return strict.Decode(&result) == nil && isAction(result.Action)
}

// answerer finds responses: from the command line, by --yes, or from a person.
type answerer struct {
	given givenAnswers
	yes   bool
	// person is nil if nobody can be asked.
	person *prompter
	// used are the keys that given answers and yes were used for. They get no second try.
	used map[string]bool
}

// errUnanswered says that nobody here can answer a request.
var errUnanswered = errors.New("input is needed")

// to is the response to a request. The error is errUnanswered, that of ctx, or says what is wrong with a given answer.
func (a *answerer) to(ctx context.Context, key string, request mcpclient.Request) (json.RawMessage, error) {
	if value, ok := a.given.to(key); ok && !a.used[key] {
		a.used[key] = true
		response, err := answer(value, request)
		if err != nil {
			return nil, usageErrorf("answer to %s: %w", key, err)
		}
		return response, nil
	}
	if request.Method != methodElicit {
		return nil, errUnanswered
	}
	question, err := parseElicitation(request.Params)
	if err != nil {
		return nil, err
	}
	if a.yes && question.Mode != "url" && !a.used[key] {
		a.used[key] = true
		if result, err := question.acceptDefaults(); err == nil {
			return json.Marshal(result)
		}
	}
	if a.person == nil {
		return nil, errUnanswered
	}
	result, err := a.person.ask(ctx, question)
	if err != nil {
		return nil, err
	}
	return json.Marshal(result)
}

// openQuestions tells how to answer requests that stay open: each as a line of JSON, then a command that answers them.
func openQuestions(requests mcpclient.Requests, command string) string {
	var text strings.Builder
	for _, key := range sortedKeys(requests) {
		line, err := json.Marshal(struct {
			Key string `json:"key"`
			mcpclient.Request
		}{key, requests[key]})
		if err != nil { // was read from JSON
			panic(err)
		}
		fmt.Fprintf(&text, "%s\n", line)
	}
	return text.String() + "answer with: " + command
}

// exampleAnswer is the KEY=JSON with which a request could be answered, quoted for a shell.
func exampleAnswer(key string, request mcpclient.Request) string {
	content := `{…}`
	if question, err := parseElicitation(request.Params); err == nil && request.Method == methodElicit {
		content = accept
		if len(question.fields) > 0 {
			content = example(question.RequestedSchema)
		}
	}
	return shellQuote(key + "=" + content)
}

var plainArgument = regexp.MustCompile(`^[A-Za-z0-9_./:=@%+,-]+$`)

// shellQuote quotes an argument for a POSIX shell if it needs that.
func shellQuote(argument string) string {
	if plainArgument.MatchString(argument) {
		return argument
	}
	return "'" + strings.ReplaceAll(argument, "'", `'\''`) + "'"
}

// sortedKeys are the keys in the order in which the questions were asked, as far as a final -N tells.
func sortedKeys(requests mcpclient.Requests) []string {
	number := func(key string) int {
		n, _ := strconv.Atoi(strings.TrimPrefix(key[len(stem(key)):], "-")) // 0 without a number
		return n
	}
	return slices.SortedFunc(maps.Keys(requests), func(a, b string) int {
		return cmp.Or(cmp.Compare(number(a), number(b)), cmp.Compare(a, b))
	})
}
