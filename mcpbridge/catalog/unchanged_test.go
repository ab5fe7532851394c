package catalog_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// existing returns a tool of a catalog that uses every field for workflows that know nothing of MCP.
func existing(t *testing.T, name string) *catalog.Tool {
	t.Helper()
	tool, ok := load(t, "testdata/existing.yaml").Tool(name)
	require.True(t, ok)
	return tool
}

func raw(text string) json.RawMessage { return json.RawMessage(text) }

// texts turns JSON values into strings, which failed assertions can be read from.
func texts(values map[string]json.RawMessage) map[string]string {
	found := map[string]string{}
	for name, value := range values {
		found[name] = string(value)
	}
	return found
}

func TestAToolHasWhatItsCatalogSays(t *testing.T) {
	order := existing(t, "order")
	assert.Equal(t, "sales", order.Namespace, "from defaults")
	assert.Equal(t, &catalog.Versioning{AutoUpgrade: true}, order.Versioning, "from defaults")
	assert.Equal(t, []string{"progress"}, order.Queries())
	var names []string
	for _, input := range order.Inputs {
		names = append(names, input.Name)
	}
	assert.Equal(t, []string{"approval", "address", "check"}, names, "in the order written")

	once := existing(t, "order_once")
	assert.Equal(t, &catalog.Dedupe{By: catalog.DedupeArguments, AfterCompletion: true}, once.Dedupe)
	assert.Equal(t, &catalog.Versioning{Deployment: "orders", BuildID: "1.2"}, once.Versioning)
	assert.Equal(t, &catalog.Dedupe{By: catalog.DedupeKey}, existing(t, "order_by_key").Dedupe)

	backfill := existing(t, "backfill")
	assert.True(t, backfill.Attach.Answer)
	assert.True(t, backfill.Attach.Cancel)
	assert.Zero(t, backfill.ExecutionTimeout, "defaults of tools that start workflows are none of its")
	assert.Empty(t, backfill.TaskQueue)
}

func TestTemplatesOfACall(t *testing.T) {
	call, err := existing(t, "order").Resolve(raw(`{"customer":"Žižek & Co. (\"large\")","items":["a","b"]}`), nil)
	require.NoError(t, err)
	assert.Equal(t, "i-ek-Co.-large", call.IDSuffix, "what cannot be in an ID is replaced")
	assert.Equal(t, map[string]string{
		"customer": `"Žižek & Co. (\"large\")"`,
		"order":    `{"rush":false,"note":"for Žižek & Co. (\"large\"): null","source":"mcp"}`,
	}, texts(call.Memo), "defaults count; what is not given is null")
	assert.Equal(t, map[string]string{
		"Customer": `"Žižek & Co. (\"large\")"`, "Rush": "false", "Items": `["a","b"]`, "Tags": `["order","Žižek & Co. (\"large\")"]`,
	}, texts(call.SearchAttributes))
}

func TestNumbersKeepTheirDigitsInTemplates(t *testing.T) {
	found := tool(t, "    input: { type: object, properties: { n: { type: integer }, x: { type: number } } }\n"+
		`    memo: { n: "${args.n}", next: "${args.n + 1}", x: "${args.x}" }`+"\n")
	call, err := found.Resolve(raw(`{"n":9007199254740993,"x":0.1}`), nil)
	require.NoError(t, err)
	assert.Equal(t, map[string]string{"n": "9007199254740993", "next": "9007199254740994", "x": "0.1"}, texts(call.Memo))
}

func TestATemplateWithoutAValueIsAnErrorOfTheCall(t *testing.T) {
	found := tool(t, "    input: { type: object, additionalProperties: true }\n"+`    memo: { a: { b: "${args.c.d}" } }`+"\n")
	_, err := found.Resolve(raw(`{}`), nil)
	assert.EqualError(t, err, `memo.a: ${args.c.d}: there is no "c"`)
	_, err = found.Resolve(raw(`{"c":1}`), nil)
	assert.EqualError(t, err, `memo.a: ${args.c.d}: there is no "d"`)
}

func TestALongSuffixIsCut(t *testing.T) {
	found := tool(t, "    input: { type: object, properties: { a: { type: string } } }\n"+`    idSuffix: "x-${args.a}"`+"\n")
	call, err := found.Resolve(raw(`{"a":"`+strings.Repeat("y", 500)+`"}`), nil)
	require.NoError(t, err)
	assert.Equal(t, "x-"+strings.Repeat("y", 98), call.IDSuffix)
}

func TestAttachingFillsInAndGrants(t *testing.T) {
	backfill := existing(t, "backfill")
	call, err := backfill.Resolve(raw(`{"date":"2026-11-30"}`), nil)
	require.NoError(t, err)
	assert.Equal(t, catalog.Call{WorkflowID: "backfill-2026-11-30-", Newest: true}, call)
	for _, date := range []string{"", "a:b", "a/b", "*", "a b", "ä", "a\nb"} {
		encoded, err := json.Marshal(map[string]string{"date": date})
		require.NoError(t, err)
		_, err = backfill.Resolve(encoded, nil)
		assert.ErrorContains(t, err, "this part of a workflow ID is one or more letters, digits and . _ ~ @ + -", date)
	}
	for id, granted := range map[string]bool{
		"backfill-2026-11-30-": true, "backfill-2026-11-30-3": true, "backfill-x-y:z": true,
		"backfill-": false, "backfill-2026": false, "backfill--a": false, "backfill-a:b-c": false, "other": false, "xbackfill-a-b": false,
		"backfill-a-b\nc": false, "": false,
	} {
		assert.Equal(t, granted, backfill.Attach.Grants(id), id)
	}
	exact := catalog.Attach{WorkflowID: "nightly"}
	made, err := catalog.NewTool(catalog.Tool{Name: "t", Attach: &exact})
	require.NoError(t, err)
	assert.True(t, made.Attach.Grants("nightly"))
	assert.False(t, made.Attach.Grants("nightly2"))
	assert.Equal(t, catalog.Attach{WorkflowID: "nightly"}, exact, "the given value is not changed")
}

func TestWhatAWorkflowSaysOfItself(t *testing.T) {
	order := existing(t, "order")
	message, progress, err := order.Status.Say(catalog.Facts{Query: raw(`{"state":"packing","done":3,"total":7.5}`)})
	require.NoError(t, err)
	assert.Equal(t, "packing: 3 of 7.5", message)
	assert.Equal(t, &signals.Progress{Done: 3, Total: 7.5}, progress)

	message, progress, err = order.Status.Say(catalog.Facts{Query: raw(`{"state":"packing","done":3,"total":"many"}`)})
	assert.EqualError(t, err, "total: query.total: is of type string, and a number belongs here")
	assert.Equal(t, "packing: 3 of many", message)
	assert.Nil(t, progress)

	_, _, err = order.Status.Say(catalog.Facts{Query: raw(`{"state":"packing"}`)})
	assert.EqualError(t, err, `message: ${query.done}: there is no "done"`)

	message, progress, err = existing(t, "backfill").Status.Say(catalog.Facts{Activities: []catalog.Activity{{}, {}}})
	require.NoError(t, err)
	assert.Equal(t, "2 activities", message)
	assert.Equal(t, &signals.Progress{Done: 1}, progress)
}

func TestTheAnswerToAQueryIsTheMessageByDefault(t *testing.T) {
	status := tool(t, "    status: { query: q }\n").Status
	for answer, want := range map[string]string{`"at work"`: "at work", `{"b":1,"a":[true,null]}`: `{"a":[true,null],"b":1}`, `7`: "7", `null`: ""} {
		message, progress, err := status.Say(catalog.Facts{Query: raw(answer)})
		require.NoError(t, err)
		assert.Equal(t, want, message)
		assert.Nil(t, progress)
	}
}

func TestWhenAQuestionIsOpen(t *testing.T) {
	order := existing(t, "order")
	approval, address, check := order.Inputs[0], order.Inputs[1], order.Inputs[2]
	waiting := catalog.Facts{Query: raw(`{"state":"waiting"}`), Memo: map[string]json.RawMessage{"customer": raw(`"x"`)}}
	for name, c := range map[string]struct {
		input catalog.Input
		facts catalog.Facts
		open  bool
	}{
		"waiting":                {approval, waiting, true},
		"not waiting":            {approval, catalog.Facts{Query: raw(`{"state":"packed"}`), Memo: waiting.Memo}, false},
		"no such member":         {approval, catalog.Facts{Query: raw(`{}`)}, false},
		"no such memo":           {approval, catalog.Facts{Query: waiting.Query}, false},
		"search attribute":       {address, catalog.Facts{Search: map[string]json.RawMessage{"Rush": raw("true")}}, true},
		"no search attribute":    {address, catalog.Facts{}, false},
		"activity tried again":   {check, catalog.Facts{Activities: []catalog.Activity{{Type: "Check", Attempt: 2}}}, true},
		"activity for the first": {check, catalog.Facts{Activities: []catalog.Activity{{Type: "Check", Attempt: 1}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			open, err := c.input.Asks(c.facts)
			require.NoError(t, err)
			assert.Equal(t, c.open, open)
		})
	}
	_, err := address.Asks(catalog.Facts{Search: map[string]json.RawMessage{"Rush": raw(`"yes"`)}})
	assert.EqualError(t, err, "search.Rush: is of type string, and a condition is true or false")
}

func TestTheRequestOfAQuestion(t *testing.T) {
	approval := existing(t, "order").Inputs[0]
	request, err := approval.Question(catalog.Facts{Memo: map[string]json.RawMessage{"customer": raw(`"A \"B\""`)}})
	require.NoError(t, err)
	assert.Equal(t, signals.MethodElicit, request.Method)
	assert.JSONEq(t, `{"mode":"form","message":"Approve the order of A \"B\"?","requestedSchema":{"type":"object",
		"properties":{"limit":{"type":"integer"},"comment":{"type":"string"}},"required":["limit"]}}`, string(request.Params))
	_, err = approval.Question(catalog.Facts{})
	assert.EqualError(t, err, `message: ${memo.customer}: there is no "customer"`)
}

func TestWhatAnAnswerDoes(t *testing.T) {
	order := existing(t, "order")
	approval, address, check := order.Inputs[0], order.Inputs[1], order.Inputs[2]
	for name, c := range map[string]struct {
		input           catalog.Input
		action, content string
		effect, payload string
	}{
		"a mapped payload":       {approval, "accept", `{"limit":12345678901234567}`, "approve", `{"by":"mcp","limit":12345678901234567,"comment":null}`},
		"a signal with nothing":  {approval, "decline", ``, "reject", ``},
		"neither of both":        {approval, "cancel", ``, "reject", ``},
		"the form as it came":    {address, "accept", `{ "city" : "Oslo" }`, "setAddress", `{"city":"Oslo"}`},
		"a form that is empty":   {address, "accept", ``, "setAddress", `{}`},
		"a cancel":               {address, "decline", ``, "cancel", ``},
		"an activity":            {check, "accept", `{}`, "Check", `true`},
		"an activity with null":  {check, "decline", ``, "Check", `null`},
		"content of no question": {check, "accept", ``, "Check", `true`},
	} {
		t.Run(name, func(t *testing.T) {
			effect, payload, err := c.input.Effect(c.action, raw(c.content), catalog.Facts{})
			require.NoError(t, err)
			does := effect.Signal + effect.Update + effect.Activity
			if effect.Cancel {
				does += "cancel"
			}
			assert.Equal(t, c.effect, does)
			assert.Equal(t, c.payload, string(payload))
		})
	}
}

func TestAnswersThatDoNotFitTheirForm(t *testing.T) {
	approval := existing(t, "order").Inputs[0]
	for content, want := range map[string]string{
		`{}`:                         "invalid arguments: /limit: is required",
		`{"limit":"5"}`:              `invalid arguments: /limit: must be an integer, found the string "5"`,
		`{"limit":5,"approvedBy":1}`: `invalid arguments: /approvedBy: is not a field of this form; known are comment and limit`,
	} {
		_, _, err := approval.Effect("accept", raw(content), catalog.Facts{})
		var mistake *catalog.ArgumentError
		require.True(t, errors.As(err, &mistake), content)
		assert.Equal(t, want, err.Error())
	}
}
