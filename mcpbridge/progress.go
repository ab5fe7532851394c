package mcpbridge

import (
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/tasks"
	"taskbridge/signals"
)

// progress tells a client that sent a progress token what its call is doing (MCP, "Progress"). A nil one tells nothing.
type progress struct {
	token  jsontext.Value
	notify func(method string, params any)
	meta   map[string]any // of each notification

	told
}

// told is what a client was told of a task last. It goes along when a call takes another round.
type told struct {
	Steps   signals.Progress `json:"steps,omitzero"`
	Message string           `json:"message,omitzero"`
	Said    int              `json:"said,omitzero"` // messages since the last step
	Begun   bool             `json:"begun,omitzero"`
}

// newProgress is nil without a token.
func newProgress(token jsontext.Value, notify func(string, any), meta map[string]any) *progress {
	if token.Kind() != '"' && token.Kind() != '0' || notify == nil {
		return nil
	}
	return &progress{token: token, notify: notify, meta: meta}
}

// report sends a notification if a task's steps or its status message have changed. The value of each is higher than
// that of the one before, as the protocol demands: steps done, plus a fraction for each message within a step.
func (p *progress) report(task *tasks.Task) {
	if p == nil {
		return
	}
	var now signals.Progress
	if task.Progress != nil {
		now = *task.Progress
	}
	now.Done = max(now.Done, p.Steps.Done)
	if p.Begun && now == p.Steps && task.StatusMessage == p.Message || now == (signals.Progress{}) && task.StatusMessage == "" {
		return
	}
	p.say(now, task.StatusMessage)
}

// resume goes on after an earlier round of the call. It says again what was said last: the client may have dropped what
// came right before the end of that round.
func (p *progress) resume(last told) {
	if p == nil || !last.Begun {
		return
	}
	p.told = last
	p.say(last.Steps, last.Message)
}

func (p *progress) say(now signals.Progress, message string) {
	if p.Said++; !p.Begun || now.Done > p.Steps.Done {
		p.Said = 0
	}
	p.Steps, p.Message, p.Begun = now, message, true
	p.notify("notifications/progress", struct {
		Token    jsontext.Value `json:"progressToken"`
		Progress float64        `json:"progress"`
		Total    float64        `json:"total,omitzero"`
		Message  string         `json:"message,omitzero"`
		Meta     map[string]any `json:"_meta,omitzero"`
	}{p.token, now.Done + float64(p.Said)/float64(p.Said+1), now.Total, message, p.meta})
}
