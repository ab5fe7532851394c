package draft

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.yaml.in/yaml/v4"
)

// defaultTaskTimeout is Temporal's for workflow tasks; histories have it where none was asked for.
const defaultTaskTimeout = 10 * time.Second

// entry is a catalog entry in the making.
type entry struct {
	Options
	*execution
	page
}

func (e *entry) write() ([]byte, error) {
	workflow := e.started.GetWorkflowType().GetName()
	e.comment("A draft from one execution of " + strconv.Quote(workflow) + ", which " + e.state() + ".")
	e.comment("One execution does not tell everything: complete the schema and the comments below, then run")
	e.comment("`taskbridge catalog check --live` on this file.")
	e.out.WriteString("version: 1\ntools:\n")
	e.indent = "  "
	name, err := yaml.Dump(text(e.Name))
	if err != nil {
		return nil, err
	}
	e.lines("", strings.TrimSpace(string(name))+":")
	e.indent = "    "
	e.comment("What does it do, and when is it the right tool? Models choose by this.")
	e.suggest("description", text(""))
	e.field("workflow", text(workflow))
	e.field("taskQueue", text(e.started.GetTaskQueue().GetName()))
	if e.Namespace != "" {
		e.field("namespace", text(e.Namespace))
	}
	if err := e.writeArguments(); err != nil {
		return nil, err
	}
	e.writeStart()
	if err := e.writeResult(); err != nil {
		return nil, err
	}
	e.writeStatus()
	e.writeInputs()
	return []byte(e.out.String()), e.err
}

// state is how the execution ended, or that it did not.
func (e *entry) state() string {
	switch e.status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		return "is running"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED:
		return "was cancelled"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED:
		return "was terminated"
	case enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return "timed out"
	case enumspb.WORKFLOW_EXECUTION_STATUS_CONTINUED_AS_NEW:
		return "continued as new"
	default:
		return strings.ToLower(e.status.String()) // completed, failed
	}
}

func (e *entry) writeArguments() error {
	arguments, err := decode(e.started.GetInput())
	if err != nil {
		return fmt.Errorf("the arguments cannot be read: %w", err)
	}
	shapes := make([]*shape, len(arguments))
	for i, argument := range arguments {
		if shapes[i], err = shapeOf(argument); err != nil {
			return fmt.Errorf("argument %d of %d: %w", i+1, len(arguments), err)
		}
	}
	switch {
	case len(shapes) == 0:
		e.field("arguments", text("none"))
	case len(shapes) == 1 && shapes[0].is("object"):
		e.field("arguments", text("object"))
		e.field("input", shapes[0].schema(e.Examples))
	default:
		e.writePositional(shapes)
	}
	return nil
}

// writePositional names the arguments by their places: histories do not know the names.
func (e *entry) writePositional(shapes []*shape) {
	all := shape{types: []string{"object"}, objects: 1}
	var names []string
	for i, s := range shapes {
		name := fmt.Sprintf("argument%d", i+1)
		names = append(names, name)
		all.properties = append(all.properties, &property{name: name, in: 1, shape: *s})
	}
	e.field("arguments", text("positional"))
	e.comment("Give these names that say what they are, here and in the schema; only their order counts.")
	e.field("positional", texts(names))
	e.field("input", all.schema(e.Examples))
}

// writeStart writes how the workflow was started. The server makes the run timeout as long as the execution timeout where
// there is none.
func (e *entry) writeStart() {
	execution, run := e.started.GetWorkflowExecutionTimeout().AsDuration(), e.started.GetWorkflowRunTimeout().AsDuration()
	if execution == 0 {
		e.comment("Without a limit, a workflow that nobody ends is a task for ever.")
		e.suggest("executionTimeout", duration(time.Hour))
	}
	e.timeout("executionTimeout", execution)
	if run != execution {
		e.timeout("runTimeout", run)
	}
	if task := e.started.GetWorkflowTaskTimeout().AsDuration(); task != defaultTaskTimeout {
		e.timeout("taskTimeout", task)
	}
	e.writeRetry()
}

// timeout writes one unless it is none, or less than the second that catalogs allow.
func (e *entry) timeout(name string, d time.Duration) {
	if d >= time.Second {
		e.field(name, duration(d))
	}
}

func (e *entry) writeRetry() {
	policy := e.started.GetRetryPolicy()
	if policy == nil {
		return
	}
	retry := mapping()
	interval := func(name string, d time.Duration) {
		if d >= time.Millisecond {
			put(retry, name, duration(d))
		}
	}
	interval("initialInterval", policy.GetInitialInterval().AsDuration())
	if coefficient := policy.GetBackoffCoefficient(); coefficient != 0 {
		put(retry, "backoffCoefficient", encode(coefficient))
	}
	interval("maximumInterval", policy.GetMaximumInterval().AsDuration())
	put(retry, "maximumAttempts", encode(policy.GetMaximumAttempts()))
	if types := policy.GetNonRetryableErrorTypes(); len(types) > 0 {
		put(retry, "nonRetryableErrorTypes", texts(types))
	}
	e.field("retry", retry)
}

// writeResult says how the result becomes the tool's, as far as this execution has one.
func (e *entry) writeResult() error {
	if e.status != enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED {
		e.comment("This execution has no result to tell how it becomes the tool's.")
		e.suggest("result", text("auto"))
		return nil
	}
	result, err := decode(e.closed.GetWorkflowExecutionCompletedEventAttributes().GetResult())
	if err != nil {
		e.comment("The result cannot be read, " + printable(err.Error()) + ".")
		e.suggest("result", text("auto"))
		return nil
	}
	s, err := shapeOf(result...)
	if err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	switch {
	case s.is("string"):
		e.field("result", text("text"))
	case s.is("object"):
		e.field("result", text("json"))
		e.comment("Clients that see a schema of the result can rely on it, so make sure that it holds for every result.")
		e.suggest("output", s.schema(e.Examples))
	default: // nothing, or JSON of another kind
		e.field("result", text("auto"))
	}
	return nil
}

// duration writes 1h instead of Go's 1h0m0s.
func duration(d time.Duration) *yaml.Node {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return text(s)
}
