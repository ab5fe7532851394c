package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"taskbridge/mcpbridge/catalog"
	"taskbridge/signals"
)

// view is what the catalog says about a running workflow that does not follow the contract.
type view struct {
	said      string
	progress  *signals.Progress
	questions map[string]question // the open ones by key
}

// question is an open one of the catalog.
type question struct {
	input    *catalog.Input
	request  signals.InputRequest
	facts    catalog.Facts // by which it is open
	activity string        // ID of the activity that an answer completes
}

// view looks at a running workflow with the eyes of its tool.
func (s *Service) view(ctx context.Context, task *Task, tool *catalog.Tool, d *workflowservice.DescribeWorkflowExecutionResponse) (*view, error) {
	v := &view{questions: map[string]question{}}
	facts := task.in.facts(d)
	answers := s.ask(ctx, task, d.GetExecutionConfig().GetTaskQueue().GetName(), tool.Queries())
	if tool.Status != nil {
		v.say(tool.Status, facts, answers)
	}
	for i := range tool.Inputs {
		input := &tool.Inputs[i]
		facts, known := withQuery(facts, input.Query, answers)
		if !known {
			v.trouble(answers[input.Query].failed)
			continue
		}
		end := task.lastEvent
		if input.Query != "" {
			end = min(end, answers[input.Query].length)
		}
		if err := s.put(ctx, v, task, tool, input, facts, end); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// say fills in status message and progress.
func (v *view) say(status *catalog.Status, facts catalog.Facts, answers map[string]answer) {
	facts, known := withQuery(facts, status.Query, answers)
	if !known {
		v.trouble(answers[status.Query].failed)
		return
	}
	var err error
	if v.said, v.progress, err = status.Say(facts); err != nil {
		v.trouble(fmt.Sprintf("status: %v", err))
	}
}

// trouble tells why the view may lack something.
func (v *view) trouble(reason string) {
	if v.said == "" && reason != noWorker {
		v.said = reason
	}
}

// put asks a question of the catalog if it is open by facts that are about a part of the history, which ends with an event.
// What has been answered since is not asked again.
func (s *Service) put(ctx context.Context, v *view, task *Task, tool *catalog.Tool, input *catalog.Input, facts catalog.Facts, end int64) error {
	open, err := input.Asks(facts)
	if err != nil {
		v.trouble(fmt.Sprintf("question %s: %v", input.Name, err))
		return nil
	}
	if !open || input.Decline.Cancel && task.CancelRequested {
		return nil
	}
	request, err := input.Question(facts)
	if err != nil {
		v.trouble(fmt.Sprintf("question %s: %v", input.Name, err))
		return nil
	}
	q := question{input: input, request: request, facts: facts}
	history, err := s.record(ctx, task, tool)
	if err != nil {
		return err
	}
	if input.Accept.Activity != "" {
		v.putForActivities(task, q, history)
		return nil
	}
	answered, pending := history.answered(input, end)
	if !pending && (answered == 0 || !input.Once) {
		v.questions[task.key(fmt.Sprintf("%s-%d", input.Name, answered+1))] = q
	}
	return nil
}

// putForActivities asks a question for each activity that its answer completes.
func (v *view) putForActivities(task *Task, q question, history *record) {
	for _, activity := range q.facts.Activities {
		if !activity.Started || activity.Type != q.input.Accept.Activity {
			continue
		}
		q.activity = activity.ID
		key := q.input.Name + "-" + activity.ID
		if n := history.execution(activity.ID); n > 1 {
			key += fmt.Sprintf("-%d", n)
		}
		v.questions[task.key(key)] = q
	}
}

// key makes a key that is unique in a run unique in all runs of the task.
func (t *Task) key(key string) string {
	if t.firstRun {
		return key
	}
	return key + "-" + t.runID[:8]
}

// join adds the questions to input requests.
func (v *view) join(requests map[string]signals.InputRequest) map[string]signals.InputRequest {
	if len(v.questions) == 0 {
		return requests
	}
	joined := maps.Clone(requests)
	if joined == nil {
		joined = map[string]signals.InputRequest{}
	}
	for key, q := range v.questions {
		joined[key] = q.request
	}
	return joined
}

// withQuery completes facts by the answer to a query. It is not known if the workflow has never answered.
func withQuery(facts catalog.Facts, query string, answers map[string]answer) (complete catalog.Facts, known bool) {
	if query == "" {
		return facts, true
	}
	facts.Query = answers[query].value
	return facts, facts.Query != nil
}

// facts are what Temporal itself tells about a running workflow.
func (n *namespace) facts(d *workflowservice.DescribeWorkflowExecutionResponse) catalog.Facts {
	info := d.GetWorkflowExecutionInfo()
	facts := catalog.Facts{Memo: map[string]json.RawMessage{}, Search: map[string]json.RawMessage{}}
	for name, payload := range info.GetMemo().GetFields() {
		if value, err := n.value(payload); err == nil {
			facts.Memo[name] = value
		}
	}
	for name, payload := range info.GetSearchAttributes().GetIndexedFields() {
		var value json.RawMessage
		if converter.GetDefaultDataConverter().FromPayload(payload, &value) == nil {
			facts.Search[name] = value
		}
	}
	for _, pending := range d.GetPendingActivities() {
		facts.Activities = append(facts.Activities, catalog.Activity{
			ID:      pending.GetActivityId(),
			Type:    pending.GetActivityType().GetName(),
			Attempt: pending.GetAttempt(),
			Started: pending.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED,
		})
	}
	return facts
}
