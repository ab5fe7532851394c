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

	told    signals.Progress
	message string
	said    int // messages since the last step
	begun   bool
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
	now.Done = max(now.Done, p.told.Done)
	if p.begun && now == p.told && task.StatusMessage == p.message || now == (signals.Progress{}) && task.StatusMessage == "" {
		return
	}
	if p.said++; !p.begun || now.Done > p.told.Done {
		p.said = 0
	}
	p.told, p.message, p.begun = now, task.StatusMessage, true
	p.notify("notifications/progress", struct {
		Token    jsontext.Value `json:"progressToken"`
		Progress float64        `json:"progress"`
		Total    float64        `json:"total,omitzero"`
		Message  string         `json:"message,omitzero"`
		Meta     map[string]any `json:"_meta,omitzero"`
	}{p.token, now.Done + float64(p.said)/float64(p.said+1), now.Total, p.message, p.meta})
}
