package catalog

import (
	"encoding/json"
	"math"
	"strconv"
	"time"

	"github.com/go-json-experiment/json/jsontext"
)

// Retry lets a workflow that fails run again, as another run of the same task. Zero fields take Temporal's defaults.
type Retry struct {
	InitialInterval        time.Duration // before the second run
	BackoffCoefficient     float64       // of each interval to the one before, at least 1
	MaximumInterval        time.Duration
	MaximumAttempts        int32    // runs in all; 0 is no limit
	NonRetryableErrorTypes []string // types of application errors after which it does not run again
}

// Priority orders what waits on a task queue (Temporal, Task Queue Priority and Fairness).
type Priority struct {
	Key            int     // 1, the most urgent, to 5; 0 is Temporal's default
	FairnessKey    string  // work with different keys takes turns; at most 64 bytes
	FairnessWeight float64 // of the key, 0.001 to 1000; 0 is Temporal's default
}

const (
	lastPriority      = 5
	maxFairnessKey    = 64
	minFairnessWeight = 0.001
	maxFairnessWeight = 1000
)

// checkStart checks how the workflow is started.
func (t *Tool) checkStart(c check) {
	within := func(field string, of limits, d time.Duration) {
		if problem := of.check(d); d != 0 && problem != "" {
			c.fail(path{field}, "%s", problem)
		}
	}
	within("executionTimeout", workflowTimeouts, t.ExecutionTimeout)
	within("runTimeout", workflowTimeouts, t.RunTimeout)
	within("taskTimeout", taskTimeouts, t.TaskTimeout)
	if t.Retry != nil && !c.skip["retry"] {
		t.Retry.check(c)
	}
	if t.Priority != nil && !c.skip["priority"] {
		t.Priority.check(c)
	}
}

func (r *Retry) check(c check) {
	within := func(field string, d time.Duration) {
		if problem := retryIntervals.check(d); d != 0 && problem != "" {
			c.fail(path{"retry", field}, "%s", problem)
		}
	}
	within("initialInterval", r.InitialInterval)
	within("maximumInterval", r.MaximumInterval)
	if r.MaximumInterval != 0 && r.MaximumInterval < r.InitialInterval {
		c.fail(path{"retry", "maximumInterval"}, "%s is shorter than the initialInterval, %s",
			formatDuration(r.MaximumInterval), formatDuration(r.InitialInterval))
	}
	if r.BackoffCoefficient != 0 && !(r.BackoffCoefficient >= 1) {
		c.fail(path{"retry", "backoffCoefficient"}, "%v is too small; 1 keeps the interval, 2 doubles it each time", r.BackoffCoefficient)
	}
	if r.MaximumAttempts < 0 {
		c.fail(path{"retry", "maximumAttempts"}, "%d is negative; 0 is without limit", r.MaximumAttempts)
	}
}

func (p *Priority) check(c check) {
	if p.Key < 0 || p.Key > lastPriority {
		c.fail(path{"priority", "key"}, "%d is not a priority; use 1, the most urgent, to %d", p.Key, lastPriority)
	}
	if len(p.FairnessKey) > maxFairnessKey {
		c.fail(path{"priority", "fairnessKey"}, "has %d bytes; Temporal takes at most %d", len(p.FairnessKey), maxFairnessKey)
	}
	if w := p.FairnessWeight; w != 0 && !(w >= minFairnessWeight && w <= maxFairnessWeight) {
		c.fail(path{"priority", "fairnessWeight"}, "%v is not a weight; use %v to %v", w, minFairnessWeight, maxFairnessWeight)
	}
}

func (t *Tool) checkResultPath(c check) {
	at := path{"resultPath"}
	switch {
	case t.ResultPath == "" || c.skip["resultPath"]:
	case !jsontext.Pointer(t.ResultPath).IsValid():
		c.fail(at, `%q is not a JSON Pointer; write it like "/report/url" or "/items/0"`, shorten(t.ResultPath))
	case t.Result == ResultMCP && !c.skip["result"]:
		c.fail(at, `has no meaning with "result: mcp", which passes the whole result on; remove one of the two`)
	}
}

func retryFields() []field[Retry] {
	return []field[Retry]{
		durationField("initialInterval", retryIntervals, func(r *Retry) *time.Duration { return &r.InitialInterval }),
		numberField("backoffCoefficient", func(r *Retry) *float64 { return &r.BackoffCoefficient }),
		durationField("maximumInterval", retryIntervals, func(r *Retry) *time.Duration { return &r.MaximumInterval }),
		{name: "maximumAttempts", set: func(c cursor, r *Retry) { r.MaximumAttempts = int32(c.wholeNumber()) }},
		{name: "nonRetryableErrorTypes", set: func(c cursor, r *Retry) { r.NonRetryableErrorTypes = c.texts() }},
	}
}

func priorityFields() []field[Priority] {
	return []field[Priority]{
		{name: "key", set: func(c cursor, p *Priority) { p.Key = c.wholeNumber() }},
		textField("fairnessKey", func(p *Priority) *string { return &p.FairnessKey }),
		numberField("fairnessWeight", func(p *Priority) *float64 { return &p.FairnessWeight }),
	}
}

func numberField[T any](name string, to func(*T) *float64) field[T] {
	return field[T]{name: name, set: func(c cursor, t *T) {
		if c.is(numberNode, "a number") && json.Unmarshal([]byte(c.node.text), to(t)) != nil {
			c.fail("the number is out of range")
		}
	}}
}

// wholeNumber is a number that fits into 32 bits.
func (c cursor) wholeNumber() int {
	if !c.is(numberNode, "a whole number") {
		return 0
	}
	n, err := strconv.Atoi(c.node.text)
	if err != nil || n > math.MaxInt32 || n < math.MinInt32 {
		c.fail("expected a whole number, found %s", c.node.describe())
		return 0
	}
	return n
}
