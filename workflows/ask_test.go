package workflows_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/workflow"

	"taskbridge/signals"
	"taskbridge/workflows"
)

// approval is a form with a required and an optional field.
type approval struct {
	Approve bool   `json:"approve" jsonschema:"Go on"`
	Comment string `json:"comment,omitempty"`
}

// counted is a form with one required number.
type counted struct {
	Count int `json:"count"`
}

func acceptCount(n int) string { return fmt.Sprintf(`{"action":"accept","content":{"count":%d}}`, n) }

func TestAnswers(t *testing.T) {
	tests := []struct {
		name, result string
		want         workflows.Answer[approval]
		accepted     bool
	}{
		{"accepted", `{"action":"accept","content":{"approve":true,"comment":"ship it"}}`, workflows.Answer[approval]{Action: workflows.Accept, Content: approval{Approve: true, Comment: "ship it"}}, true},
		{"accepted with the answer no", `{"action":"accept","content":{"approve":false}}`, workflows.Answer[approval]{Action: workflows.Accept}, true},
		{"accepted with members nobody asked for", `{"action":"accept","content":{"approve":true,"extra":[1]},"_meta":{}}`, workflows.Answer[approval]{Action: workflows.Accept, Content: approval{Approve: true}}, true},
		{"declined", `{"action":"decline"}`, workflows.Answer[approval]{Action: workflows.Decline}, false},
		{"declined with a form", `{"action":"decline","content":{"approve":true}}`, workflows.Answer[approval]{Action: workflows.Decline}, false},
		{"cancelled", `{"action":"cancel"}`, workflows.Answer[approval]{Action: workflows.Cancel}, false},
		{"cancelled with null as content", `{"action":"cancel","content":null}`, workflows.Answer[approval]{Action: workflows.Cancel}, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.Answer[approval], error) {
				return workflows.Elicit[approval](ctx, task, workflows.Question{Message: "Go on?"})
			})
			run.answers = map[string]string{"question-1": test.result}
			got := result[workflows.Answer[approval]](run, nil)
			assert.Equal(t, test.want, got)
			assert.Equal(t, test.accepted, got.Accepted())
		})
	}
}

func TestAnswersKeepBigIntegersExact(t *testing.T) {
	run := newTaskRun(t, askCounts(1))
	run.answers = map[string]string{"count-1": acceptCount(9007199254740993)}
	assert.Equal(t, []int{9007199254740993}, result[[]int](run, nil))
}

func TestAWholeNumberIsAnIntegerHoweverItIsWritten(t *testing.T) {
	run := newTaskRun(t, askCounts(1))
	run.answers = map[string]string{"count-1": `{"action":"accept","content":{"count":3.0}}`}
	assert.Equal(t, []int{3}, result[[]int](run, nil))
}

func TestAFormOfOptionalFieldsMayBeAcceptedEmpty(t *testing.T) {
	type form struct {
		Comment string `json:"comment,omitempty"`
	}
	for _, content := range []string{"", `,"content":{}`} {
		run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.Answer[form], error) {
			return workflows.Elicit[form](ctx, task, workflows.Question{Message: "Anything to say?"})
		})
		run.answers = map[string]string{"question-1": `{"action":"accept"` + content + `}`}
		assert.Equal(t, workflows.Answer[form]{Action: workflows.Accept}, result[workflows.Answer[form]](run, nil))
	}
}

// message is what a person reads in a published question.
func message(t *testing.T, request signals.InputRequest) string {
	t.Helper()
	var params struct {
		Message string `json:"message"`
	}
	require.NoError(t, json.Unmarshal(request.Params, &params))
	return params.Message
}

func TestUnusableAnswersAreAskedForAgain(t *testing.T) {
	tests := []struct{ name, result, reason string }{
		{"field of another type", `{"action":"accept","content":{"count":"three"}}`, "count"},
		{"fraction for an integer", `{"action":"accept","content":{"count":1.5}}`, "count"},
		{"integer that fits no int", `{"action":"accept","content":{"count":1e30}}`, "count"},
		{"field missing", `{"action":"accept","content":{}}`, "count"},
		{"content missing", `{"action":"accept"}`, "count"},
		{"content null", `{"action":"accept","content":null}`, "count"},
		{"content no object", `{"action":"accept","content":[3]}`, "content is not an object"},
		{"unknown action", `{"action":"maybe"}`, `action "maybe" is not accept, decline or cancel`},
		{"no action", `{}`, `action "" is not accept, decline or cancel`},
		{"no object", `"yes"`, "answer is not an object"},
		{"null", `null`, "not accept, decline or cancel"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			run := newTaskRun(t, askCounts(1))
			run.at(1*time.Second, func() { run.answer("count-1", test.result) })
			run.at(2*time.Second, func() {
				require.Equal(t, []string{"count-2"}, run.open(), "a new key: the old one is answered")
				text := message(t, run.state().InputRequests["count-2"])
				assert.True(t, strings.HasPrefix(text, "How many?\n"), text)
				assert.Contains(t, text, test.reason)
				run.answer("count-2", acceptCount(3))
			})
			assert.Equal(t, []int{3}, result[[]int](run, nil))
		})
	}
}

func TestARepeatedQuestionGivesTheLastReasonOnly(t *testing.T) {
	run := newTaskRun(t, askCounts(1))
	run.answers = map[string]string{"count-1": `{"action":"first"}`, "count-2": `{"action":"second"}`, "count-3": acceptCount(1)}
	require.Equal(t, []int{1}, result[[]int](run, nil))
	for _, state := range run.published {
		if request, ok := state.InputRequests["count-3"]; ok {
			assert.NotContains(t, message(t, request), `"first"`)
			assert.Contains(t, message(t, request), `"second"`)
		}
	}
}

func TestSeveralQuestionsAreOpenAtOnce(t *testing.T) {
	orders := [][]string{
		{"name-1", "count-2", "approve-3"},
		{"approve-3", "count-2", "name-1"},
		{"count-2", "approve-3", "name-1"},
	}
	answers := map[string]string{
		"name-1":    `{"action":"accept","content":{"name":"Ada"}}`,
		"count-2":   acceptCount(2),
		"approve-3": `{"action":"cancel"}`,
	}
	for _, order := range orders {
		t.Run(strings.Join(order, " "), func(t *testing.T) {
			run := newTaskRun(t, interview)
			for i, key := range order {
				run.at(time.Duration(i+1)*time.Second, func() {
					assert.ElementsMatch(t, order[i:], run.open())
					run.answer(key, answers[key])
				})
			}
			assert.Equal(t, "Ada 2 cancel", result[string](run, nil))
		})
	}
	t.Run("all in one signal", func(t *testing.T) {
		run := newTaskRun(t, interview)
		run.at(time.Second, func() {
			run.SignalWorkflow(signals.InputSignal, input("name-1", answers["name-1"], "count-2", answers["count-2"], "approve-3", answers["approve-3"]))
		})
		assert.Equal(t, "Ada 2 cancel", result[string](run, nil))
	})
}

type named struct {
	Name string `json:"name"`
}

// interview asks three questions at once.
func interview(ctx workflow.Context, task *workflows.Task) (string, error) {
	name, err := workflows.Ask[named](ctx, task, workflows.Question{Name: "name", Message: "Who?"})
	if err != nil {
		return "", err
	}
	count, err := workflows.Ask[counted](ctx, task, workflows.Question{Name: "count", Message: "How many?"})
	if err != nil {
		return "", err
	}
	approve, err := workflows.Ask[approval](ctx, task, workflows.Question{Name: "approve", Message: "Go on?"})
	if err != nil {
		return "", err
	}
	who, err := name.Get(ctx)
	if err != nil {
		return "", err
	}
	many, err := count.Get(ctx)
	if err != nil {
		return "", err
	}
	goOn, err := approve.Get(ctx)
	return fmt.Sprintf("%s %d %s", who.Content.Name, many.Content.Count, goOn.Action), err
}

func TestAQuestionMayBringItsOwnSchema(t *testing.T) {
	schema := `{"type":"object","properties":{"colour":{"type":"string","enum":["red","blue"],"default":"red"}},"required":["colour"]}`
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (map[string]string, error) {
		question := workflows.Question{Name: "colour", Message: "Which?", Schema: json.RawMessage(schema)}
		answer, err := workflows.Elicit[map[string]string](ctx, task, question)
		return answer.Content, err
	})
	run.answers = map[string]string{
		"colour-1": `{"action":"accept","content":{"colour":"green"}}`,
		"colour-2": `{"action":"accept","content":{"colour":"blue"}}`,
	}
	assert.Equal(t, map[string]string{"colour": "blue"}, result[map[string]string](run, nil))

	var params struct {
		RequestedSchema json.RawMessage `json:"requestedSchema"`
	}
	require.NoError(t, json.Unmarshal(run.published[0].InputRequests["colour-1"].Params, &params))
	assert.Equal(t, schema, string(params.RequestedSchema), "passed on as it is written")
}

// ask reports with what error a question cannot be asked.
func ask[T any](t *testing.T, question workflows.Question) error {
	t.Helper()
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (any, error) {
		_, err := workflows.Ask[T](ctx, task, question)
		return nil, err
	})
	run.start(nil)
	assert.Empty(t, run.published, "the question must not be seen")
	return run.GetWorkflowError()
}

func TestFormsThatCannotBeAsked(t *testing.T) {
	q := workflows.Question{Name: "q", Message: "?"}
	withSchema := func(schema string) workflows.Question {
		return workflows.Question{Name: "q", Message: "?", Schema: json.RawMessage(schema)}
	}
	tests := []struct {
		name string
		err  error
		want []string
	}{
		{"list", ask[struct {
			Tags []string `json:"tags"`
		}](t, q), []string{`field "tags"`, "primitive fields only"}},
		{"map", ask[struct {
			Labels map[string]string `json:"labels"`
		}](t, q), []string{`field "labels"`, "primitive fields only"}},
		{"struct in a struct", ask[struct {
			Inner counted `json:"inner"`
		}](t, q), []string{`field "inner"`, "primitive fields only"}},
		{"pointer", ask[struct {
			Count *int `json:"count"`
		}](t, q), []string{`field "count"`, "primitive fields only"}},
		{"anything", ask[struct {
			Value any `json:"value"`
		}](t, q), []string{`field "value"`, "primitive fields only"}},
		{"channel", ask[struct {
			Events chan int `json:"events"`
		}](t, q), []string{"chan int"}},
		{"no struct", ask[string](t, q), []string{"string is not a struct"}},
		{"list of structs", ask[[]counted](t, q), []string{"is not a struct"}},
		{"schema that is no JSON", ask[counted](t, withSchema(`{`)), []string{"schema"}},
		{"schema that refers to nothing", ask[counted](t, withSchema(`{"$ref":"#/$defs/none"}`)), []string{"schema"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for _, want := range append(test.want, `question "q"`) {
				require.ErrorContains(t, test.err, want)
			}
		})
	}
}

func TestElicitURL(t *testing.T) {
	for _, action := range []workflows.Action{workflows.Accept, workflows.Decline, workflows.Cancel} {
		t.Run(string(action), func(t *testing.T) {
			run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.Action, error) {
				return workflows.ElicitURL(ctx, task, "login", "Log in, please.", "https://example.com/login?a=1&b=2")
			})
			run.answers = map[string]string{
				"login-1": `{"action":"opened"}`,
				"login-2": fmt.Sprintf(`{"action":%q}`, action),
			}
			assert.Equal(t, action, result[workflows.Action](run, nil))

			first := run.published[0].InputRequests["login-1"]
			assert.Equal(t, "elicitation/create", first.Method)
			assert.JSONEq(t, `{"mode":"url","message":"Log in, please.","url":"https://example.com/login?a=1&b=2"}`, string(first.Params))
			again := run.published[len(run.published)-2].InputRequests["login-2"]
			assert.Contains(t, message(t, again), `Log in, please.`)
			assert.Contains(t, message(t, again), `action "opened" is not accept, decline or cancel`)
		})
	}
}

func TestSample(t *testing.T) {
	temperature := 0.5
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.SamplingResult, error) {
		return workflows.Sample(ctx, task, "summary", workflows.Sampling{
			Messages:     []workflows.SamplingMessage{{Role: workflows.User, Content: signals.Text("Sum it up.")}},
			SystemPrompt: "Be brief.",
			MaxTokens:    100,
			Temperature:  &temperature,
		})
	})
	run.answers = map[string]string{
		"summary-1": `{"role":"assistant","content":{"type":"text","text":"All well."},"model":"m-1","stopReason":"endTurn"}`,
	}
	assert.Equal(t, workflows.SamplingResult{
		Role:       workflows.Assistant,
		Content:    json.RawMessage(`{"type":"text","text":"All well."}`),
		Model:      "m-1",
		StopReason: "endTurn",
	}, result[workflows.SamplingResult](run, nil))

	request := run.published[0].InputRequests["summary-1"]
	assert.Equal(t, "sampling/createMessage", request.Method)
	assert.JSONEq(t, `{"messages":[{"role":"user","content":{"type":"text","text":"Sum it up."}}],"systemPrompt":"Be brief.",
		"maxTokens":100,"temperature":0.5}`, string(request.Params))
}

func TestListRoots(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) ([]workflows.Root, error) {
		return workflows.ListRoots(ctx, task)
	})
	run.answers = map[string]string{"roots-1": `{"roots":[{"uri":"file:///src","name":"sources"},{"uri":"file:///doc"}]}`}
	assert.Equal(t, []workflows.Root{{URI: "file:///src", Name: "sources"}, {URI: "file:///doc"}}, result[[]workflows.Root](run, nil))

	request := run.published[0].InputRequests["roots-1"]
	assert.Equal(t, "roots/list", request.Method)
	assert.JSONEq(t, `{}`, string(request.Params))
}

func TestResultsThatAreNoneAreErrors(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) ([]workflows.Root, error) {
		return workflows.ListRoots(ctx, task)
	})
	run.answers = map[string]string{"roots-1": `"none"`}
	run.start(nil)
	require.ErrorContains(t, run.GetWorkflowError(), "result of roots/list")
	assert.Empty(t, run.published[len(run.published)-1].InputRequests)
}

func TestNamesAreExact(t *testing.T) {
	run := newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.Answer[approval], error) {
		return workflows.Elicit[approval](ctx, task, workflows.Question{Message: "Go on?"})
	})
	run.answers = map[string]string{
		"question-1": `{"action":"decline","ACTION":"accept","content":{"approve":true}}`,
	}
	assert.Equal(t, workflows.Answer[approval]{Action: workflows.Decline}, result[workflows.Answer[approval]](run, nil))

	run = newTaskRun(t, func(ctx workflow.Context, task *workflows.Task) (workflows.Answer[approval], error) {
		return workflows.Elicit[approval](ctx, task, workflows.Question{Message: "Go on?"})
	})
	run.answers = map[string]string{"question-1": `{"action":"accept","content":{"approve":false,"Approve":true}}`}
	assert.False(t, result[workflows.Answer[approval]](run, nil).Content.Approve)
}
