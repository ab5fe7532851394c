package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"taskbridge/mcpbridge/catalog"
)

const (
	// pollAge is how old the last poll of a live worker can be. A poll takes a minute at most, and Temporal tells of those
	// of the last five.
	pollAge = 90 * time.Second
	// knownRuns is how many runs of a task queue are looked through for the workflow types that it has.
	knownRuns = 200
	// shownTypes is how many of these types a message names.
	shownTypes = 8
)

// needs are what a tool needs of its namespace. One that follows workflows of others starts none, and needs nothing.
func (i *inspector) needs(tool *catalog.Tool) []need {
	if tool.Attach != nil {
		return nil
	}
	return append([]need{i.workers(tool.TaskQueue), i.runs(tool.Workflow, tool.TaskQueue)}, i.searchAttributes(tool)...)
}

// existence is the need of the namespace itself.
func (i *inspector) existence() need {
	return need{key{subject: fmt.Sprintf("namespace %q", i.namespace)}, func(ctx context.Context) (state, error) {
		request := &workflowservice.DescribeNamespaceRequest{Namespace: i.namespace}
		_, err := i.temporal.WorkflowService().DescribeNamespace(ctx, request)
		var missing *serviceerror.NamespaceNotFound
		if errors.As(err, &missing) {
			return wrong("does not exist: create it with `temporal operator namespace create -n %s`", i.namespace), nil
		}
		return ok("exists"), err
	}}
}

// workers is the need of one that polls a task queue for workflows.
func (i *inspector) workers(queue string) need {
	return need{key{subject: fmt.Sprintf("task queue %q", queue)}, func(ctx context.Context) (state, error) {
		described, err := i.temporal.WorkflowService().DescribeTaskQueue(ctx, &workflowservice.DescribeTaskQueueRequest{
			Namespace:     i.namespace,
			TaskQueue:     &taskqueuepb.TaskQueue{Name: queue, Kind: enumspb.TASK_QUEUE_KIND_NORMAL},
			TaskQueueType: enumspb.TASK_QUEUE_TYPE_WORKFLOW,
		})
		return polled(described.GetPollers(), time.Now()), err
	}}
}

// polled is the state of a task queue with these pollers, of which one worker has several.
func polled(pollers []*taskqueuepb.PollerInfo, now time.Time) state {
	alive, last := map[string]bool{}, time.Time{}
	for _, poller := range pollers {
		at := poller.GetLastAccessTime().AsTime()
		if now.Sub(at) < pollAge {
			alive[poller.GetIdentity()] = true
		}
		if at.After(last) {
			last = at
		}
	}
	switch {
	case len(alive) == 1:
		return ok("1 worker polls it")
	case len(alive) > 1:
		return ok("%d workers poll it", len(alive))
	case last.IsZero():
		return wrong("no worker polls it: start its worker")
	}
	return wrong("no worker polls it, the last did %s ago: start its worker", now.Sub(last).Round(time.Second))
}

// runs is the wish for a run of a workflow type on a task queue: where there is none, the name may be wrong.
func (i *inspector) runs(workflow, queue string) need {
	return need{key{fmt.Sprintf("workflow type %q", workflow), queue}, func(ctx context.Context) (state, error) {
		here := "TaskQueue = " + quote(queue)
		seen, err := i.list(ctx, 1, here+" AND WorkflowType = "+quote(workflow))
		if err != nil {
			return state{}, err
		}
		if len(seen) > 0 {
			return ok("last run started %s", seen[0].GetStartTime().AsTime().Format(time.RFC3339)), nil
		}
		others, err := i.list(ctx, knownRuns, here)
		return unseen(others), err
	}}
}

// unseen is the state of a workflow type that has no runs where others have.
func unseen(others []*workflowpb.WorkflowExecutionInfo) state {
	if len(others) == 0 {
		return note("not seen, nor any other on this task queue: check the spelling of both")
	}
	types := map[string]bool{}
	for _, run := range others {
		types[fmt.Sprintf("%q", run.GetType().GetName())] = true
	}
	names := slices.Sorted(maps.Keys(types))
	return note("not seen on this task queue: check the spelling; did you mean %s?",
		strings.Join(names[:min(len(names), shownTypes)], ", "))
}

// list asks visibility for the newest runs that the query finds.
func (i *inspector) list(ctx context.Context, size int32, query string) ([]*workflowpb.WorkflowExecutionInfo, error) {
	answer, err := i.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: i.namespace, PageSize: size, Query: query,
	})
	return answer.GetExecutions(), err
}

// quote is a string literal of a visibility query.
func quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// searchAttributes are the needs of those that a tool sets.
func (i *inspector) searchAttributes(tool *catalog.Tool) []need {
	var needs []need
	for _, name := range slices.Sorted(maps.Keys(tool.SearchAttributes)) {
		needs = append(needs, i.searchAttribute(name, kindOf(tool.SearchAttributes[name], tool.InputSchema)))
	}
	return needs
}

func (i *inspector) searchAttribute(name string, kind enumspb.IndexedValueType) need {
	return need{key{subject: fmt.Sprintf("search attribute %q", name)}, func(ctx context.Context) (state, error) {
		attributes, err := i.listAttributes(ctx)
		if err != nil {
			return state{}, err
		}
		if its, found := attributes.GetCustomAttributes()[name]; found {
			return ok("its type is %s", its), nil
		}
		if _, reserved := attributes.GetSystemAttributes()[name]; reserved {
			return wrong("is Temporal's own, and not for others to set: choose another name"), nil
		}
		create := "temporal operator search-attribute create --namespace %s --name %s --type %s"
		return wrong("does not exist: create it with `"+create+"`", i.namespace, name, kind), nil
	}}
}

// listAttributes asks for the namespace's search attributes, once.
func (i *inspector) listAttributes(ctx context.Context) (*operatorservice.ListSearchAttributesResponse, error) {
	if i.attributes != nil {
		return i.attributes, nil
	}
	request := &operatorservice.ListSearchAttributesRequest{Namespace: i.namespace}
	answer, err := i.temporal.OperatorService().ListSearchAttributes(ctx, request)
	if err == nil {
		i.attributes = answer
	}
	return answer, err
}

// kindOf is the type of search attribute that suits a template, by its value or by the schema of the argument that it is.
func kindOf(template, arguments json.RawMessage) enumspb.IndexedValueType {
	var value any
	_ = json.Unmarshal(template, &value)
	switch v := value.(type) {
	case []any:
		return enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST
	case bool:
		return enumspb.INDEXED_VALUE_TYPE_BOOL
	case float64:
		return enumspb.INDEXED_VALUE_TYPE_DOUBLE
	case string:
		if m := oneArgument.FindStringSubmatch(v); m != nil {
			return kindOfArgument(m[1], arguments)
		}
	}
	return enumspb.INDEXED_VALUE_TYPE_KEYWORD
}

var oneArgument = regexp.MustCompile(`^\$\{\s*args\.([A-Za-z_][A-Za-z0-9_]*)\s*\}$`)

func kindOfArgument(name string, arguments json.RawMessage) enumspb.IndexedValueType {
	var schema struct {
		Properties map[string]struct {
			Type, Format any
		}
	}
	_ = json.Unmarshal(arguments, &schema)
	property := schema.Properties[name]
	switch {
	case property.Type == "integer":
		return enumspb.INDEXED_VALUE_TYPE_INT
	case property.Type == "number":
		return enumspb.INDEXED_VALUE_TYPE_DOUBLE
	case property.Type == "boolean":
		return enumspb.INDEXED_VALUE_TYPE_BOOL
	case property.Type == "array":
		return enumspb.INDEXED_VALUE_TYPE_KEYWORD_LIST
	case property.Format == "date-time":
		return enumspb.INDEXED_VALUE_TYPE_DATETIME
	}
	return enumspb.INDEXED_VALUE_TYPE_KEYWORD
}
