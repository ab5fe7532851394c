package catalog_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"taskbridge/mcpbridge/catalog"
)

// mistakes are catalogs with what is said about them. The fields of a tool start at line 6, column 5.
var mistakes = []struct {
	name string
	yaml string
	want []string
}{
	{
		"empty file",
		"",
		[]string{
			`c.yaml:1:1: the file is empty; a catalog starts with "version: 1" and lists its tools under "tools:"`,
		},
	},
	{
		"only comments",
		`# nothing
`,
		[]string{
			`c.yaml:1:1: the file is empty; a catalog starts with "version: 1" and lists its tools under "tools:"`,
		},
	},
	{
		"only a document marker",
		`---
`,
		[]string{
			`c.yaml:2:1: expected a mapping, found nothing (null); a catalog starts with "version: 1" and lists its tools under "tools:"`,
		},
	},
	{
		"not a mapping",
		`- a
`,
		[]string{
			`c.yaml:1:1: expected a mapping, found a list; a catalog starts with "version: 1" and lists its tools under "tools:"`,
		},
	},
	{
		"no version and no tools",
		`defaults: {}
`,
		[]string{
			`c.yaml:1:1: version is missing; a catalog starts with "version: 1" and lists its tools under "tools:"`,
			`c.yaml:1:1: tools is missing; a catalog starts with "version: 1" and lists its tools under "tools:"`,
		},
	},
	{
		"another version",
		`version: '1'
tools: {}
`,
		[]string{
			`c.yaml:1:10: version: expected the number 1, found the string "1"; no other version is known`,
		},
	},
	{
		"nothing under tools",
		`version: 1
tools:
`,
		[]string{
			"c.yaml:2:7: tools: expected a mapping of tool names to tools, found nothing (null)",
		},
	},
	{
		"second document",
		`version: 1
tools: {}
---
version: 1
`,
		[]string{
			`c.yaml:3:1: a second YAML document starts here; keep one document a file and remove the "---"`,
		},
	},
	{
		"unclosed list",
		`version: 1
tools: [a
b: c
`,
		[]string{
			"c.yaml:3:2: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence that starts at line 2",
		},
	},
	{
		"colon in a value",
		`version: 1
tools:
  t:
    title: CI: all of it
`,
		[]string{
			"c.yaml:4:14: not valid YAML: mapping values are not allowed in this context",
		},
	},
	{
		"tab",
		"version: 1\ntools:\n\tt:\n",
		[]string{
			"c.yaml:3:1: not valid YAML: the line is indented with a tab; YAML wants spaces",
		},
	},
	{
		"unknown anchor",
		`version: 1
tools: *tools
`,
		[]string{
			"c.yaml:2:8: not valid YAML: unknown anchor 'tools' referenced",
		},
	},
	{
		"not UTF-8",
		"version: 1\ntools: \"\xff\"\n",
		[]string{
			"c.yaml:2:9: not valid YAML: a control character or a byte that is not UTF-8",
		},
	},
	{
		"control character",
		"version: 1\ntools: \"a\x01\"\n",
		[]string{
			"c.yaml:2:10: not valid YAML: a control character or a byte that is not UTF-8",
		},
	},
	{
		"resultPath that is no pointer",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    resultPath: report.url
`,
		[]string{
			`c.yaml:6:17: tools.t.resultPath: "report.url" is not a JSON Pointer; write it like "/report/url" or "/items/0"`,
		},
	},
	{
		"resultPath with a broken escape",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    resultPath: '/a~2'
`,
		[]string{
			`c.yaml:6:17: tools.t.resultPath: "/a~2" is not a JSON Pointer; write it like "/report/url" or "/items/0"`,
		},
	},
	{
		"empty resultPath",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    resultPath: ''
`,
		[]string{
			`c.yaml:6:17: tools.t.resultPath: is empty; write something or remove it`,
		},
	},
	{
		"resultPath of a list",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    resultPath: [a]
`,
		[]string{
			`c.yaml:6:17: tools.t.resultPath: expected a string, found a list`,
		},
	},
	{
		"resultPath of a whole result",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    result: mcp
    resultPath: /a
`,
		[]string{
			`c.yaml:7:17: tools.t.resultPath: has no meaning with "result: mcp", which passes the whole result on; remove one of the two`,
		},
	},
	{
		"runTimeout too short",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    runTimeout: 10ms
`,
		[]string{
			`c.yaml:6:17: tools.t.runTimeout: 10ms is too short; the shortest is 1s`,
		},
	},
	{
		"taskTimeout too long",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    taskTimeout: 5m
`,
		[]string{
			`c.yaml:6:18: tools.t.taskTimeout: 5m is too long; the longest is 2m`,
		},
	},
	{
		"taskTimeout without a unit",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    taskTimeout: 10
`,
		[]string{
			`c.yaml:6:18: tools.t.taskTimeout: 10 has no unit; write 10s`,
		},
	},
	{
		"retry as a number",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: 3
`,
		[]string{
			`c.yaml:6:12: tools.t.retry: expected a mapping, found the number 3`,
		},
	},
	{
		"retry with an unknown field",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { maxAttempts: 3 }
`,
		[]string{
			`c.yaml:6:14: tools.t.retry.maxAttempts: unknown field; known are initialInterval, backoffCoefficient, maximumInterval, maximumAttempts and nonRetryableErrorTypes`,
		},
	},
	{
		"retry interval without a unit",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { initialInterval: 1 }
`,
		[]string{
			`c.yaml:6:31: tools.t.retry.initialInterval: 1 has no unit; write 1s`,
		},
	},
	{
		"retry interval too short",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { maximumInterval: 1us }
`,
		[]string{
			`c.yaml:6:31: tools.t.retry.maximumInterval: 1µs is too short; the shortest is 1ms`,
		},
	},
	{
		"retry intervals the wrong way round",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { initialInterval: 1m, maximumInterval: 1s }
`,
		[]string{
			`c.yaml:6:52: tools.t.retry.maximumInterval: 1s is shorter than the initialInterval, 1m`,
		},
	},
	{
		"retry that shrinks",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { backoffCoefficient: 0.5 }
`,
		[]string{
			`c.yaml:6:34: tools.t.retry.backoffCoefficient: 0.5 is too small; 1 keeps the interval, 2 doubles it each time`,
		},
	},
	{
		"retry coefficient in words",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { backoffCoefficient: two }
`,
		[]string{
			`c.yaml:6:34: tools.t.retry.backoffCoefficient: expected a number, found the string "two"`,
		},
	},
	{
		"negative attempts",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { maximumAttempts: -1 }
`,
		[]string{
			`c.yaml:6:31: tools.t.retry.maximumAttempts: -1 is negative; 0 is without limit`,
		},
	},
	{
		"half an attempt",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { maximumAttempts: 1.5 }
`,
		[]string{
			`c.yaml:6:31: tools.t.retry.maximumAttempts: expected a whole number, found the number 1.5`,
		},
	},
	{
		"too many attempts",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { maximumAttempts: 99999999999 }
`,
		[]string{
			`c.yaml:6:31: tools.t.retry.maximumAttempts: expected a whole number, found the number 99999999999`,
		},
	},
	{
		"error types that are no list",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    retry: { nonRetryableErrorTypes: Bad }
`,
		[]string{
			`c.yaml:6:38: tools.t.retry.nonRetryableErrorTypes: expected a list, found the string "Bad"`,
		},
	},
	{
		"priority as a word",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    priority: high
`,
		[]string{
			`c.yaml:6:15: tools.t.priority: expected a mapping, found the string "high"`,
		},
	},
	{
		"priority out of range",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    priority: { key: 9 }
`,
		[]string{
			`c.yaml:6:22: tools.t.priority.key: 9 is not a priority; use 1, the most urgent, to 5`,
		},
	},
	{
		"long fairness key",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    priority: { fairnessKey: kkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkkk }
`,
		[]string{
			`c.yaml:6:30: tools.t.priority.fairnessKey: has 65 bytes; Temporal takes at most 64`,
		},
	},
	{
		"heavy fairness key",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    priority: { fairnessWeight: 2000 }
`,
		[]string{
			`c.yaml:6:33: tools.t.priority.fairnessWeight: 2000 is not a weight; use 0.001 to 1000`,
		},
	},
	{
		"cron",
		`version: 1
tools:
  t:
    workflow: W
    taskQueue: q
    cron: '0 2 * * *'
`,
		[]string{
			`c.yaml:6:5: tools.t.cron: a task ends, and a cron workflow does not; use a Temporal Schedule`,
		},
	},
	{
		"unknown top-level field",
		`version: 1
tool: {}
tools: {}
`,
		[]string{
			`c.yaml:2:1: tool: unknown field; did you mean "tools"?`,
		},
	},
	{
		"top-level field far from all",
		`version: 1
workflows: {}
tools: {}
`,
		[]string{
			"c.yaml:2:1: workflows: unknown field; known are version, defaults and tools",
		},
	},
	{
		"duplicate tool",
		`version: 1
tools:
  t: { workflow: W, taskQueue: q }
  t: { workflow: W, taskQueue: q }
`,
		[]string{
			"c.yaml:4:3: tools.t: is already declared at c.yaml:3:3",
		},
	},
	{
		"numeric tool name",
		`version: 1
tools:
  404: { workflow: W, taskQueue: q }
`,
		[]string{
			`c.yaml:3:3: tools: the key 404 is a number and keys are strings; write "404"`,
		},
	},
	{
		"tool name with a space",
		`version: 1
tools:
  my tool: { workflow: W, taskQueue: q }
`,
		[]string{
			`c.yaml:3:12: tools."my tool": "my tool" is not a tool name; use 1 to 128 of the characters A-Z, a-z, 0-9, _, - and .`,
		},
	},
	{
		"tool without a body",
		`version: 1
tools:
  t:
`,
		[]string{
			"c.yaml:3:5: tools.t: expected a mapping, found nothing (null)",
		},
	},
	{
		"nothing named",
		`version: 1
tools:
  t: {}
`,
		[]string{
			"c.yaml:3:3: tools.t.workflow: is missing; name the workflow type to start",
			"c.yaml:3:3: tools.t.taskQueue: is missing; name the task queue of the workflow's workers here or in defaults",
		},
	},
	{
		"mistake in defaults is reported once",
		`version: 1
defaults: { task: no, retention: 5, taskQueue: 7 }
tools:
  a: { workflow: W }
  b: { workflow: W }
`,
		[]string{
			`c.yaml:2:19: defaults.task: "no" is not a task mode; use required, optional or never`,
			"c.yaml:2:34: defaults.retention: 5 has no unit; write 5s",
			"c.yaml:2:48: defaults.taskQueue: expected a string, found the number 7",
		},
	},
	{
		"default for what needs none",
		`version: 1
defaults: { workflow: W, inputFile: a.json, taskqueue: q }
tools: {}
`,
		[]string{
			"c.yaml:2:13: defaults.workflow: cannot have a default; write it in each tool",
			"c.yaml:2:26: defaults.inputFile: cannot have a default; write it in each tool",
			`c.yaml:2:45: defaults.taskqueue: unknown field; did you mean "taskQueue"?`,
		},
	},
	{
		"unknown field",
		withFields(`    taskQeue: x
`),
		[]string{
			`c.yaml:6:5: tools.t.taskQeue: unknown field; did you mean "taskQueue"?`,
		},
	},
	{
		"unknown field far from all",
		withFields(`    colour: red
`),
		[]string{
			"c.yaml:6:5: tools.t.colour: unknown field; known are title, description, workflow, taskQueue, namespace, attach, input, output, arguments, positional, with, idSuffix, memo, searchAttributes, dedupe, status, inputs, task, fallback, handoffAfter, result, resultPath, executionTimeout, runTimeout, taskTimeout, retry, priority, versioning, retention, pollInterval, inlineWait, cancel, confirm, annotations, icons, inputFile and outputFile",
		},
	},
	{
		"task: no",
		withFields(`    task: no
`),
		[]string{
			`c.yaml:6:11: tools.t.task: "no" is not a task mode; use required, optional or never`,
		},
	},
	{
		"task: false",
		withFields(`    task: false
`),
		[]string{
			"c.yaml:6:11: tools.t.task: expected a task mode, found false; use required, optional or never",
		},
	},
	{
		"empty task",
		withFields(`    task:
`),
		[]string{
			"c.yaml:6:10: tools.t.task: expected a task mode, found nothing (null); use required, optional or never",
		},
	},
	{
		"fallback: task",
		withFields(`    fallback: task
    handoffAfter: 30s
`),
		[]string{
			`c.yaml:6:15: tools.t.fallback: "task" is not a fallback; use wait, handoff or refuse`,
		},
	},
	{
		"fallback: false",
		withFields(`    fallback: false
`),
		[]string{
			"c.yaml:6:15: tools.t.fallback: expected a fallback, found false; use wait, handoff or refuse",
		},
	},
	{
		"fallback of a required task",
		`version: 1
defaults: { taskQueue: q, task: required, fallback: handoff }
tools:
  a: { workflow: W, task: required, fallback: wait }
  b: { workflow: W, task: required, fallback: handoff, handoffAfter: 30s }
  c: { workflow: W, fallback: wait }
`,
		[]string{
			`c.yaml:4:47: tools.a.fallback: "task: required" refuses calls without a task; leave fallback out, or make the task optional`,
			`c.yaml:5:47: tools.b.fallback: "task: required" refuses calls without a task; leave fallback out, or make the task optional`,
			`c.yaml:6:31: tools.c.fallback: "task: required" refuses calls without a task; leave fallback out, or make the task optional`,
		},
	},
	{
		"fallback without tasks",
		withFields(`    task: never
    fallback: handoff
`) + "  u: { workflow: W, taskQueue: q, task: never, fallback: refuse }\n",
		[]string{
			`c.yaml:7:15: tools.t.fallback: "task: never" always waits; leave fallback out, or make the task optional`,
			`c.yaml:8:58: tools.u.fallback: with "task: never" nobody could call the tool; leave fallback out, or make the task required`,
		},
	},
	{
		"handoffAfter without handoff",
		`version: 1
defaults: { taskQueue: q, fallback: handoff }
tools:
  a: { workflow: W, fallback: wait, handoffAfter: 30s }
  b: { workflow: W, fallback: refuse, handoffAfter: 30s }
  c: { workflow: W, task: required, handoffAfter: 30s }
  d: { workflow: W, task: never, handoffAfter: 30s }
`,
		[]string{
			`c.yaml:4:51: tools.a.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`,
			`c.yaml:5:53: tools.b.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`,
			`c.yaml:6:51: tools.c.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`,
			`c.yaml:7:48: tools.d.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`,
		},
	},
	{
		"handoffAfter without any fallback",
		withFields(`    handoffAfter: 30s
`),
		[]string{
			`c.yaml:6:19: tools.t.handoffAfter: has no meaning without "fallback: handoff"; write that too or remove this`,
		},
	},
	{
		"handoff limits",
		`version: 1
defaults: { taskQueue: q, handoffAfter: 500ms }
tools:
  a: { workflow: W, fallback: handoff, handoffAfter: 0s }
  b: { workflow: W, fallback: handoff, handoffAfter: 11m }
  c: { workflow: W, fallback: wait, handoffAfter: 45 }
`,
		[]string{
			"c.yaml:2:41: defaults.handoffAfter: 500ms is too short; the shortest is 1s",
			"c.yaml:4:54: tools.a.handoffAfter: 0s is too short; the shortest is 1s",
			"c.yaml:5:54: tools.b.handoffAfter: 11m is too long; the longest is 10m",
			"c.yaml:6:51: tools.c.handoffAfter: 45 has no unit; write 45s",
		},
	},
	{
		"broken default fallback",
		`version: 1
defaults: { taskQueue: q, fallback: later }
tools:
  a: { workflow: W, handoffAfter: 30s }
`,
		[]string{
			`c.yaml:2:37: defaults.fallback: "later" is not a fallback; use wait, handoff or refuse`,
		},
	},
	{
		"names of the companion tools",
		`version: 1
defaults: { taskQueue: q }
tools:
  task_wait: { workflow: W }
  task_answer: { workflow: W }
  task_cancel: { workflow: W }
`,
		[]string{
			`c.yaml:4:14: tools.task_wait: "task_wait" is reserved for going on with a task that was handed off; choose another name`,
			`c.yaml:5:16: tools.task_answer: "task_answer" is reserved for going on with a task that was handed off; choose another name`,
			`c.yaml:6:16: tools.task_cancel: "task_cancel" is reserved for going on with a task that was handed off; choose another name`,
		},
	},
	{
		"wrong kinds",
		withFields(`    title: 5
    description: true
    with: [a]
    icons: {}
    positional: a
    confirm: yes
`),
		[]string{
			"c.yaml:6:12: tools.t.title: expected a string, found the number 5",
			"c.yaml:7:18: tools.t.description: expected a string, found true",
			"c.yaml:8:11: tools.t.with: expected a mapping of argument names to values, found a list",
			"c.yaml:9:12: tools.t.icons: expected a list, found a mapping",
			`c.yaml:10:17: tools.t.positional: expected a list, found the string "a"`,
			`c.yaml:11:14: tools.t.confirm: expected a mapping, found the string "yes"`,
		},
	},
	{
		"empty text",
		withFields(`    title: ''
`),
		[]string{
			"c.yaml:6:12: tools.t.title: is empty; write something or remove it",
		},
	},
	{
		"duration without unit",
		withFields(`    pollInterval: 5
`),
		[]string{
			"c.yaml:6:19: tools.t.pollInterval: 5 has no unit; write 5s",
		},
	},
	{
		"quoted duration without unit",
		withFields(`    pollInterval: '1.5'
`),
		[]string{
			"c.yaml:6:19: tools.t.pollInterval: 1.5 has no unit; write 1.5s",
		},
	},
	{
		"words for a duration",
		withFields(`    retention: 7 days
`),
		[]string{
			`c.yaml:6:16: tools.t.retention: "7 days" is not a duration; write a duration like 90s, 15m, 2h30m or 7d`,
		},
	},
	{
		"list for a duration",
		withFields(`    retention: [7d]
`),
		[]string{
			"c.yaml:6:16: tools.t.retention: expected a duration, found a list; write a duration like 90s, 15m, 2h30m or 7d",
		},
	},
	{
		"too many days",
		withFields(`    retention: 1000000d
`),
		[]string{
			`c.yaml:6:16: tools.t.retention: "1000000d" is not a duration; write a duration like 90s, 15m, 2h30m or 7d`,
		},
	},
	{
		"duration limits",
		withFields(`    executionTimeout: 500ms
    retention: 0s
    pollInterval: 50ms
    inlineWait: 2m
`),
		[]string{
			"c.yaml:6:23: tools.t.executionTimeout: 500ms is too short; the shortest is 1s",
			"c.yaml:7:16: tools.t.retention: 0s is too short; the shortest is 1ms",
			"c.yaml:8:19: tools.t.pollInterval: 50ms is too short; the shortest is 100ms",
			"c.yaml:9:17: tools.t.inlineWait: 2m is too long; the longest is 1m",
		},
	},
	{
		"negative and too long durations",
		withFields(`    executionTimeout: -5s
    retention: -1h
    pollInterval: 1h1s
    inlineWait: -1s
`),
		[]string{
			"c.yaml:6:23: tools.t.executionTimeout: -5s is too short; the shortest is 1s",
			"c.yaml:7:16: tools.t.retention: -1h is too short; the shortest is 1ms",
			"c.yaml:8:19: tools.t.pollInterval: 1h0m1s is too long; the longest is 1h",
			"c.yaml:9:17: tools.t.inlineWait: -1s is negative",
		},
	},
	{
		"input is no mapping",
		withFields(`    input: schemas/ci.json
`),
		[]string{
			`c.yaml:6:12: tools.t.input: expected a schema, which is a mapping, found the string "schemas/ci.json"`,
		},
	},
	{
		"input without type",
		withFields(`    input: { properties: { a: { type: string } } }
`),
		[]string{
			`c.yaml:6:12: tools.t.input: the schema has no type; add "type: object"`,
		},
	},
	{
		"input of another type",
		withFields(`    input: { type: array }
`),
		[]string{
			`c.yaml:6:12: tools.t.input: the type at the root of the schema must be object, found the string "array"`,
		},
	},
	{
		"input and inputFile",
		withFields(`    input: { type: object }
    inputFile: a.json
`),
		[]string{
			"c.yaml:7:16: tools.t.inputFile: input is given too; keep one of the two",
		},
	},
	{
		"inputFile without files",
		withFields(`    inputFile: a.json
`),
		[]string{
			"c.yaml:6:16: tools.t.inputFile: this catalog is not a file, so it cannot name others; write the schema here",
		},
	},
	{
		"mistyped type",
		withFields(`    input: { type: object, properties: { a: { type: strng } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.type: unknown type "strng"; did you mean "string"?`,
		},
	},
	{
		"type of another vocabulary",
		withFields(`    input: { type: object, properties: { a: { type: uuid } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.type: unknown type "uuid"; known are string, integer, number, boolean, object, array and null`,
		},
	},
	{
		"required is no list",
		withFields(`    input: { type: object, properties: { a: { type: string, required: true } } }
`),
		[]string{
			"c.yaml:6:71: tools.t.input.properties.a.required: must be an array, found true",
		},
	},
	{
		"several schema mistakes",
		withFields(`    input:
      type: object
      properties:
        a: { minLength: -1 }
        b: { enum: x }
        c: 5
`),
		[]string{
			"c.yaml:9:25: tools.t.input.properties.a.minLength: must be at least 0, found the number -1",
			`c.yaml:10:20: tools.t.input.properties.b.enum: must be an array, found the string "x"`,
			"c.yaml:11:12: tools.t.input.properties.c: must be a boolean or an object, found the number 5",
		},
	},
	{
		"type lists",
		withFields(`    input: { type: object, properties: { a: { type: [string, nul] } } }
`),
		[]string{
			`c.yaml:6:62: tools.t.input.properties.a.type[1]: unknown type "nul"; did you mean "null"?`,
		},
	},
	{
		"network reference",
		withFields(`    input: { type: object, properties: { a: { $ref: 'https://example.com/a.json#/x' } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.$ref: "https://example.com/a.json#/x" is outside the schema; only references within the schema, like #/$defs/name, are followed`,
		},
	},
	{
		"file reference",
		withFields(`    input: { type: object, properties: { a: { $ref: other.json } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.$ref: "other.json" is outside the schema; only references within the schema, like #/$defs/name, are followed`,
		},
	},
	{
		"dangling reference",
		withFields(`    input: { type: object, properties: { a: { $ref: '#/$defs/b' } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.$ref: the schema has nothing at "#/$defs/b"`,
		},
	},
	{
		"dangling anchor",
		withFields(`    input: { type: object, properties: { a: { $ref: '#b' } } }
`),
		[]string{
			`c.yaml:6:53: tools.t.input.properties.a.$ref: the schema has no anchor "#b"`,
		},
	},
	{
		"unknown dialect",
		withFields(`    input: { $schema: 'https://example.com/dialect', type: object }
`),
		[]string{
			`c.yaml:6:23: tools.t.input.$schema: unknown JSON Schema dialect "https://example.com/dialect"; remove it for 2020-12`,
		},
	},
	{
		"lookahead",
		withFields(`    input: { type: object, properties: { a/b: { type: string, pattern: '(?=a)' } } }
`),
		[]string{
			`c.yaml:6:72: tools.t.input.properties."a/b".pattern: not a regular expression in RE2 syntax: invalid or unsupported Perl syntax in "(?=a)"`,
		},
	},
	{
		"default against its schema",
		withFields(`    input: { type: object, properties: { a: { type: integer, default: '3' } } }
`),
		[]string{
			`c.yaml:6:71: tools.t.input.properties.a.default: must be an integer, found the string "3"`,
		},
	},
	{
		"bad header names",
		withFields(`    input:
      type: object
      properties:
        a: { type: string, x-mcp-header: '' }
        b: { type: string, x-mcp-header: a b }
        c: { type: number, x-mcp-header: C }
        d: { type: string, x-mcp-header: D }
        e: { type: string, x-mcp-header: d }
        f: { type: array, items: { type: string, x-mcp-header: F } }
        g: { type: [string, 'null'], x-mcp-header: G }
`),
		[]string{
			"c.yaml:9:42: tools.t.input.properties.a.x-mcp-header: a header name is one or more letters, digits and !#$%&'*+-.^_`|~, found the string \"\"",
			"c.yaml:10:42: tools.t.input.properties.b.x-mcp-header: a header name is one or more letters, digits and !#$%&'*+-.^_`|~, found the string \"a b\"",
			`c.yaml:11:42: tools.t.input.properties.c.x-mcp-header: only properties with "type: string", integer or boolean can be headers`,
			`c.yaml:13:42: tools.t.input.properties.e.x-mcp-header: the property "d" has the header "d" already; header names must differ by more than case`,
			"c.yaml:14:64: tools.t.input.properties.f.items.x-mcp-header: only properties reached through nothing but properties can be headers",
			`c.yaml:15:52: tools.t.input.properties.g.x-mcp-header: only properties with "type: string", integer or boolean can be headers`,
		},
	},
	{
		"header on the root",
		withFields(`    input: { type: object, x-mcp-header: Root }
`),
		[]string{
			"c.yaml:6:42: tools.t.input.x-mcp-header: only properties reached through nothing but properties can be headers",
		},
	},
	{
		"bad output schema",
		withFields(`    output: { type: object, properties: { a: { type: bolean } } }
`),
		[]string{
			`c.yaml:6:54: tools.t.output.properties.a.type: unknown type "bolean"; did you mean "boolean"?`,
		},
	},
	{
		"NaN in with",
		withFields(`    with: { a: [1, .nan] }
    retention: 1d
`),
		[]string{
			"c.yaml:6:20: tools.t.with.a[1]: .nan has no JSON form; NaN, infinity and other words for numbers cannot be passed on",
		},
	},
	{
		"infinity in a schema",
		withFields(`    input: { type: object, properties: { a: { maximum: .inf } } }
`),
		[]string{
			"c.yaml:6:56: tools.t.input.properties.a.maximum: .inf has no JSON form; NaN, infinity and other words for numbers cannot be passed on",
		},
	},
	{
		"octal",
		withFields(`    with: { mode: 0755 }
`),
		[]string{
			"c.yaml:6:19: tools.t.with.mode: 0755 starts with 0, which is octal to some YAML readers and decimal to others; quote it if it is text, else drop the 0 or write 0o for octal",
		},
	},
	{
		"custom tag",
		withFields(`    with: { a: !secret x, b: !!binary aGk=, c: !!bool maybe }
`),
		[]string{
			"c.yaml:6:16: tools.t.with.a: the tag !secret has no JSON form; remove it",
			"c.yaml:6:30: tools.t.with.b: the tag !!binary has no JSON form; remove it",
			`c.yaml:6:48: tools.t.with.c: "maybe" is not a boolean; use true or false`,
		},
	},
	{
		"key that is no string",
		withFields(`    with: { codes: { 404: x, true: y, ~: z } }
`),
		[]string{
			`c.yaml:6:22: tools.t.with.codes: the key 404 is a number and keys are strings; write "404"`,
			`c.yaml:6:30: tools.t.with.codes: the key true is a boolean and keys are strings; write "true"`,
			`c.yaml:6:39: tools.t.with.codes: the key ~ is null and keys are strings; write "~"`,
		},
	},
	{
		"key that is a list",
		withFields(`    with: { ? [a, b] : x }
`),
		[]string{
			"c.yaml:6:15: tools.t.with: a key must be a string, not a list or mapping",
		},
	},
	{
		"duplicate key deep inside",
		withFields(`    with: { a: { b: 1, c: 2, b: 3 } }
`),
		[]string{
			"c.yaml:6:30: tools.t.with.a.b: is already declared at c.yaml:6:18",
		},
	},
	{
		"anchor within itself",
		withFields(`    with: { a: &a { b: *a } }
`),
		[]string{
			`c.yaml:6:24: tools.t.with.a.b.b: the anchor "a" contains itself`,
		},
	},
	{
		"merge of a string",
		withFields(`    with: { <<: x }
`),
		[]string{
			`c.yaml:6:17: tools.t.with."<<": expected a mapping to merge, found the string "x"`,
		},
	},
	{
		"with collides",
		withFields(`    input: { type: object, properties: { Pipeline: {} } }
    with: { pipeline: 1 }
`),
		[]string{
			`c.yaml:7:23: tools.t.with.pipeline: the input schema has a property "Pipeline" too; the operator or the client sets an argument, not both`,
		},
	},
	{
		"arguments: list",
		withFields(`    arguments: list
`),
		[]string{
			`c.yaml:6:16: tools.t.arguments: "list" is not an argument mode; use object, positional or none`,
		},
	},
	{
		"positional without names",
		withFields(`    arguments: positional
`),
		[]string{
			`c.yaml:3:3: tools.t.positional: is missing; list the argument names in the workflow's order, or use "arguments: object" or "none"`,
		},
	},
	{
		"names without positional",
		withFields(`    positional: [a]
`),
		[]string{
			`c.yaml:6:17: tools.t.positional: has no meaning here; write "arguments: positional" or remove it`,
		},
	},
	{
		"positional mistakes",
		withFields(`    input: { type: object, properties: { source: {}, limit: {} } }
    with: { token: x }
    arguments: positional
    positional: [source, sorce, source]
`),
		[]string{
			`c.yaml:9:17: tools.t.positional: does not list "limit", which would never reach the workflow`,
			`c.yaml:9:17: tools.t.positional: does not list "token", which would never reach the workflow`,
			`c.yaml:9:26: tools.t.positional[1]: unknown argument "sorce"; did you mean "source"?`,
			`c.yaml:9:33: tools.t.positional[2]: "source" is listed twice`,
		},
	},
	{
		"positional of numbers",
		withFields(`    arguments: positional
    positional: [1]
`),
		[]string{
			"c.yaml:7:18: tools.t.positional[0]: expected a string, found the number 1",
		},
	},
	{
		"nothing passed on",
		withFields(`    arguments: none
    input: { type: object, properties: { a: {} } }
    with: { b: 1 }
    confirm: { message: Sure?, argument: c }
`),
		[]string{
			`c.yaml:7:40: tools.t.input.properties: would never reach the workflow with "arguments: none"`,
			`c.yaml:8:11: tools.t.with: would never reach the workflow with "arguments: none"`,
			`c.yaml:9:42: tools.t.confirm.argument: would never reach the workflow with "arguments: none"`,
		},
	},
	{
		"confirm without message",
		withFields(`    confirm: { schema: { type: object, properties: {} } }
`),
		[]string{
			"c.yaml:6:5: tools.t.confirm.message: is missing; write the question to ask",
		},
	},
	{
		"confirm argument collides",
		withFields(`    input: { type: object, properties: { a: {} } }
    with: { b: 1 }
    confirm: { message: m, argument: A }
`),
		[]string{
			`c.yaml:8:38: tools.t.confirm.argument: the input schema has a property "a" too; choose another name`,
		},
	},
	{
		"confirm argument collides with with",
		withFields(`    with: { b: 1 }
    confirm: { message: m, argument: b }
`),
		[]string{
			`c.yaml:7:38: tools.t.confirm.argument: with sets "b" too; choose another name`,
		},
	},
	{
		"confirm with a mistyped field",
		withFields(`    confirm: { mesage: m }
`),
		[]string{
			"c.yaml:6:5: tools.t.confirm.message: is missing; write the question to ask",
			`c.yaml:6:16: tools.t.confirm.mesage: unknown field; did you mean "message"?`,
		},
	},
	{
		"nested form",
		withFields(`    confirm: { message: m, schema: { type: object, properties: { a: { type: object, properties: {} } } } }
`),
		[]string{
			"c.yaml:6:77: tools.t.confirm.schema.properties.a.type: a form property is a string, number, integer, boolean or array; nested objects cannot be asked for",
		},
	},
	{
		"form without properties",
		withFields(`    confirm: { message: m, schema: { type: object } }
`),
		[]string{
			"c.yaml:6:28: tools.t.confirm.schema.properties: is missing; a form is a mapping of property names to their schemas",
		},
	},
	{
		"form keywords",
		withFields(`    confirm:
      message: m
      schema:
        type: object
        additionalProperties: false
        properties:
          a: { type: string, pattern: x, format: uuid }
          b: { type: number, minLength: 1 }
          c: { type: array, items: { type: object } }
          d: { type: array }
          e: { type: string, enum: [1] }
          f: { type: string, oneOf: [ { const: x } ] }
          g: { type: array, items: { enum: [a] } }
          h: { type: array, items: { anyOf: [] } }
          i: { type: boolean, default: 'yes' }
        required: [z]
`),
		[]string{
			"c.yaml:10:31: tools.t.confirm.schema.additionalProperties: unknown keyword in a form; known are $schema, type, properties and required",
			"c.yaml:12:39: tools.t.confirm.schema.properties.a.pattern: unknown keyword in a form property of type string; known are type, title, description, default, minLength, maxLength, format, enum and oneOf",
			`c.yaml:12:50: tools.t.confirm.schema.properties.a.format: the string "uuid" cannot be asked for; use email, uri, date or date-time`,
			"c.yaml:13:41: tools.t.confirm.schema.properties.b.minLength: unknown keyword in a form property of type number; known are type, title, description, default, minimum and maximum",
			"c.yaml:14:36: tools.t.confirm.schema.properties.c.items: a list is asked for by its options, as enum or anyOf",
			"c.yaml:15:11: tools.t.confirm.schema.properties.d.items: is missing; a list is asked for by its options, as enum or anyOf",
			"c.yaml:16:37: tools.t.confirm.schema.properties.e.enum[0]: expected a string, found the number 1",
			"c.yaml:17:39: tools.t.confirm.schema.properties.f.oneOf[0].title: every option needs a string here",
			`c.yaml:18:29: tools.t.confirm.schema.properties.g.items.type: the options are strings; write "type: string"`,
			"c.yaml:19:45: tools.t.confirm.schema.properties.h.items.anyOf: expected a list of {const, title}, found an empty list",
			`c.yaml:21:20: tools.t.confirm.schema.required[0]: unknown property; did you mean "a"?`,
		},
	},
	{
		"form default",
		withFields(`    confirm: { message: m, schema: { type: object, properties: { a: { type: boolean, default: 'yes' } } } }
`),
		[]string{
			`c.yaml:6:95: tools.t.confirm.schema.properties.a.default: must be a boolean, found the string "yes"`,
		},
	},
	{
		"unknown annotation",
		withFields(`    annotations: { readOnly: true, destructiveHint: no }
`),
		[]string{
			`c.yaml:6:20: tools.t.annotations.readOnly: unknown field; did you mean "readOnlyHint"?`,
			`c.yaml:6:53: tools.t.annotations.destructiveHint: expected true or false, found the string "no"`,
		},
	},
	{
		"bad icons",
		withFields(`    icons:
      - { src: http://example.com/a.png }
      - { mimeType: image/png, sizes: [48] }
      - { src: 'data:,', sizes: [48], colour: red }
      - { src: 'https:///x', sizes: [big], theme: blue }
      - x
`),
		[]string{
			`c.yaml:7:16: tools.t.icons[0].src: "http://example.com/a.png" is not an https: or data: URI`,
			"c.yaml:8:9: tools.t.icons[1].src: is missing; give an https: or data: URI",
			"c.yaml:8:40: tools.t.icons[1].sizes[0]: expected a string, found the number 48",
			"c.yaml:9:34: tools.t.icons[2].sizes[0]: expected a string, found the number 48",
			"c.yaml:9:39: tools.t.icons[2].colour: unknown field; known are src, mimeType, sizes and theme",
			`c.yaml:10:16: tools.t.icons[3].src: "https:///x" is not an https: or data: URI`,
			`c.yaml:10:38: tools.t.icons[3].sizes[0]: "big" is not an icon size; write it like "48x48" or "any"`,
			`c.yaml:10:51: tools.t.icons[3].theme: "blue" is not a theme; use light or dark`,
			`c.yaml:11:9: tools.t.icons[4]: expected a mapping, found the string "x"`,
		},
	},
	{
		"several mistakes in one tool",
		withFields(`    task: sometimes
    retention: 5
    input: { type: objekt }
    cancle: request
`),
		[]string{
			`c.yaml:6:11: tools.t.task: "sometimes" is not a task mode; use required, optional or never`,
			"c.yaml:7:16: tools.t.retention: 5 has no unit; write 5s",
			`c.yaml:8:12: tools.t.input: the type at the root of the schema must be object, found the string "objekt"`,
			`c.yaml:9:5: tools.t.cancle: unknown field; did you mean "cancel"?`,
		},
	},
	{
		"tool names in paths",
		withFields(`    with: { 'a.b': { 'c d': [ { e: .nan } ] } }
`),
		[]string{
			`c.yaml:6:36: tools.t.with."a.b"."c d"[0].e: .nan has no JSON form; NaN, infinity and other words for numbers cannot be passed on`,
		},
	},
	{
		"nested too deep",
		withFields("    with: { a: " + strings.Repeat("[", 210) + strings.Repeat("]", 210) + " }\n"),
		[]string{
			"c.yaml:6:213: tools.t.with.a: nested deeper than 200 levels",
		},
	},
	{
		"huge exponent in a schema",
		withFields(`    input: { type: object, properties: { a: { maximum: 1e999999999, multipleOf: 1e-5000 } } }
`),
		[]string{
			"c.yaml:6:56: tools.t.input.properties.a.maximum: the exponent is out of range",
			"c.yaml:6:81: tools.t.input.properties.a.multipleOf: the exponent is out of range",
		},
	},
	{
		"pattern of property names",
		withFields(`    input: { type: object, patternProperties: { '(?<=a)': {} } }
`),
		[]string{
			`c.yaml:6:59: tools.t.input.patternProperties."(?<=a)": not a regular expression in RE2 syntax: invalid named capture in "(?<=a)"`,
		},
	},
	{
		"bad id",
		withFields(`    input: { type: object, $id: 'http://[::1', properties: {} }
`),
		[]string{
			`c.yaml:6:12: tools.t.input: not a JSON Schema: error in parsing id at "catalog:///schema#"`,
		},
	},
	{
		"default of a number beyond float64",
		withFields(`    input: { type: object, properties: { a: { type: string, default: 1e400 } } }
`),
		[]string{
			"c.yaml:6:70: tools.t.input.properties.a.default: must be a string, found the number 1e400",
		},
	},
	{
		"empty schema file name",
		withFields(`    inputFile: ''
`),
		[]string{
			"c.yaml:6:16: tools.t.inputFile: this catalog is not a file, so it cannot name others; write the schema here",
		},
	},
	{
		"mistakes through aliases are reported once",
		`version: 1
x-bad: &bad { task: maybe, retention: .nan }
tools:
  a: { workflow: W, taskQueue: q, <<: *bad }
  b: { workflow: W, taskQueue: q, <<: *bad }
`,
		[]string{
			`c.yaml:2:21: tools.a.task: "maybe" is not a task mode; use required, optional or never`,
			"c.yaml:2:39: x-bad.retention: .nan has no JSON form; NaN, infinity and other words for numbers cannot be passed on",
		},
	},
	{
		"key through an alias",
		`version: 1
x-name: &name t
tools:
  *name : { workflow: 5, taskQueue: q }
`,
		[]string{
			"c.yaml:4:23: tools.t.workflow: expected a string, found the number 5",
		},
	},
	{
		"tag on a mapping",
		withFields(`    with: { a: !!set { b }, !!binary aGk= : c }
`),
		[]string{
			"c.yaml:6:16: tools.t.with.a: the tag !!set has no JSON form; remove it",
			`c.yaml:6:29: tools.t.with: the key aGk= is tagged !!binary and keys are strings; write "aGk="`,
		},
	},
	{
		"schemas that are no mappings",
		withFields(`    output: true
    confirm: { message: m, schema: [] }
`),
		[]string{
			"c.yaml:6:13: tools.t.output: expected a schema, which is a mapping, found true",
			"c.yaml:7:36: tools.t.confirm.schema: expected a schema, which is a mapping, found a list",
		},
	},
	{
		"form of another type",
		withFields(`    confirm: { message: m, schema: { type: array } }
`),
		[]string{
			`c.yaml:6:36: tools.t.confirm.schema: the type at the root of the schema must be object, found the string "array"`,
		},
	},
	{
		"form options that are no list",
		withFields(`    confirm: { message: m, schema: { type: object, properties: { a: { type: string, enum: x }, b: { type: string, enum: [] } } } }
`),
		[]string{
			`c.yaml:6:91: tools.t.confirm.schema.properties.a.enum: expected a list of strings, found the string "x"`,
			"c.yaml:6:121: tools.t.confirm.schema.properties.b.enum: expected a list of strings, found an empty list",
		},
	},
	{
		"anchor merged into itself",
		withFields(`    with: { a: &a { b: 1, <<: *a } }
`),
		[]string{
			`c.yaml:6:31: tools.t.with.a: the anchor "a" contains itself`,
		},
	},
	{
		"broken value merged",
		withFields(`    with: { <<: [ &x { n: .nan }, 7 ] }
`),
		[]string{
			"c.yaml:6:27: tools.t.with.n: .nan has no JSON form; NaN, infinity and other words for numbers cannot be passed on",
		},
	},
	{
		"merge of an alias to a list",
		withFields(`    with: { a: &l [ { b: 1 } ], <<: *l }
`),
		[]string{
			`c.yaml:6:16: tools.t.with."<<": expected a mapping to merge, found a list`,
		},
	},
	{
		"live belongs to status",
		withFields(`    live: true
`),
		[]string{
			"c.yaml:6:5: tools.t.live: what an unchanged workflow tells about itself is asked with status",
		},
	},
	{
		"a signal outside of questions",
		withFields(`    signal: approve
`),
		[]string{
			"c.yaml:6:5: tools.t.signal: a signal is sent by an answer: inputs.NAME.accept.signal",
		},
	},
	{
		"a workflow ID of one's own",
		withFields(`    workflowId: order-1
`),
		[]string{
			"c.yaml:6:5: tools.t.workflowId: task IDs are random, so that nobody can guess them; idSuffix ends them, and attach.workflowId follows a workflow that is there",
		},
	},
	{
		"a timeout of no kind",
		withFields(`    timeout: 5m
`),
		[]string{
			"c.yaml:6:5: tools.t.timeout: write which: executionTimeout, of the workflow with all its runs, runTimeout or taskTimeout",
		},
	},
	{
		"a retry policy under its Temporal name",
		withFields(`    retryPolicy: { maximumAttempts: 3 }
`),
		[]string{
			"c.yaml:6:5: tools.t.retryPolicy: write it as retry",
		},
	},
	{
		"a schedule",
		withFields(`    schedule: '@daily'
`),
		[]string{
			"c.yaml:6:5: tools.t.schedule: a catalog starts workflows when they are called; use a Temporal Schedule for others",
		},
	},
	{
		"schema under its name on the wire",
		withFields(`    inputSchema: { type: object }
`),
		[]string{
			"c.yaml:6:5: tools.t.inputSchema: the schema of the arguments is written as input",
		},
	},
	{
		"questions under another name",
		withFields(`    questions: {}
`),
		[]string{
			"c.yaml:6:5: tools.t.questions: questions belong under inputs",
		},
	},
	{
		"query beside the fields of a tool",
		withFields(`    query: state
`),
		[]string{
			"c.yaml:6:5: tools.t.query: a query belongs into status, or into a question under inputs",
		},
	},
	{
		"namespace that is no string",
		withFields(`    namespace: [a]
`),
		[]string{
			"c.yaml:6:16: tools.t.namespace: expected a string, found a list",
		},
	},
	{
		"suffix with an unknown argument",
		withFields(`    input: { type: object, properties: { city: { type: string }, count: { type: integer } } }
    idSuffix: "${args.citty}"
`),
		[]string{
			`c.yaml:7:15: tools.t.idSuffix: ${args.citty}: args has no "citty"; did you mean "city"?`,
		},
	},
	{
		"suffix with other characters",
		withFields(`    idSuffix: "a:b"
`),
		[]string{
			`c.yaml:6:15: tools.t.idSuffix: ":" cannot be in it; use letters, digits and . _ ~ @ + -`,
		},
	},
	{
		"suffix without an end",
		withFields(`    idSuffix: "a-${args.city"
`),
		[]string{
			"c.yaml:6:15: tools.t.idSuffix: ${args.city has no } that ends it; write $${ for the characters ${ themselves",
		},
	},
	{
		"suffix that asks a query",
		withFields(`    idSuffix: "${query.a}"
`),
		[]string{
			"c.yaml:6:15: tools.t.idSuffix: query is known of running workflows only; before the start there is args, the call's arguments",
		},
	},
	{
		"suffix beside dedupe",
		withFields(`    idSuffix: x
    dedupe: key
`),
		[]string{
			"c.yaml:6:15: tools.t.idSuffix: cannot go with dedupe, which makes task IDs of its own; remove one of the two",
		},
	},
	{
		"expression that is none",
		withFields(`    input: { type: object, properties: { city: { type: string }, count: { type: integer } } }
    memo: { a: "${args.}" }
`),
		[]string{
			`c.yaml:7:16: tools.t.memo.a: ${args.}: character 6: unexpected "."`,
		},
	},
	{
		"empty expression",
		withFields(`    memo: { a: "x ${ }" }
`),
		[]string{
			"c.yaml:6:16: tools.t.memo.a: ${ }: is empty; write an expression",
		},
	},
	{
		"unknown variable",
		withFields(`    input: { type: object, properties: { city: { type: string }, count: { type: integer } } }
    memo: { a: "${arg.city}" }
`),
		[]string{
			`c.yaml:7:16: tools.t.memo.a: ${arg.city}: unknown variable "arg"; did you mean "args"?`,
		},
	},
	{
		"unknown function",
		withFields(`    input: { type: object, properties: { city: { type: string }, count: { type: integer } } }
    memo: { a: { b: [ "${siz(args.city)}" ] } }
`),
		[]string{
			`c.yaml:7:23: tools.t.memo.a.b[0]: ${siz(args.city)}: unknown function "siz"; did you mean "size"?`,
		},
	},
	{
		"operands that do not go together",
		withFields(`    memo: { a: "${1 + 'a'}" }
`),
		[]string{
			"c.yaml:6:16: tools.t.memo.a: ${1 + 'a'}: character 3: + does not take int, string",
		},
	},
	{
		"memo that is taskbridge's own",
		withFields(`    memo: { mcp.state: 1 }
`),
		[]string{
			`c.yaml:6:24: tools.t.memo."mcp.state": names that begin with "mcp." are taskbridge's own; choose another`,
		},
	},
	{
		"memo that is no mapping",
		withFields(`    memo: [a]
`),
		[]string{
			"c.yaml:6:11: tools.t.memo: expected a mapping of memo fields to values, found a list",
		},
	},
	{
		"expression in a name",
		withFields(`    memo: { a: { "${args.x}": 1 } }
`),
		[]string{
			`c.yaml:6:31: tools.t.memo.a."${args.x}": the name of a member cannot have ${ in it; expressions are for values`,
		},
	},
	{
		"search attribute that is a mapping",
		withFields(`    searchAttributes: { Team: { a: b } }
`),
		[]string{
			"c.yaml:6:31: tools.t.searchAttributes.Team: a search attribute is a string, a number, true or false, or a list of strings, found a mapping",
		},
	},
	{
		"search attribute that is null",
		withFields(`    searchAttributes: { Team: }
`),
		[]string{
			"c.yaml:6:31: tools.t.searchAttributes.Team: a search attribute is a string, a number, true or false, or a list of strings, found nothing (null)",
		},
	},
	{
		"search attribute with numbers in a list",
		withFields(`    searchAttributes: { Tags: [a, 1] }
`),
		[]string{
			"c.yaml:6:31: tools.t.searchAttributes.Tags: a search attribute is a string, a number, true or false, or a list of strings, found a list with the number 1",
		},
	},
	{
		"argument that nobody can give in a search attribute",
		withFields(`    input: { type: object, properties: { city: { type: string }, count: { type: integer } } }
    searchAttributes: { City: "${args.town}" }
`),
		[]string{
			`c.yaml:7:31: tools.t.searchAttributes.City: ${args.town}: args has no "town"; it has city and count`,
		},
	},
	{
		"dedupe by something else",
		withFields(`    dedupe: content
`),
		[]string{
			`c.yaml:6:13: tools.t.dedupe: "content" is not a way to tell calls apart; use arguments or key`,
		},
	},
	{
		"dedupe that is no mapping",
		withFields(`    dedupe: [arguments]
`),
		[]string{
			"c.yaml:6:13: tools.t.dedupe: expected a way to tell calls apart, found a list; use arguments or key",
		},
	},
	{
		"dedupe by nothing",
		withFields(`    dedupe: { afterCompletion: true }
`),
		[]string{
			"c.yaml:6:5: tools.t.dedupe.by: is missing; say what makes two calls the same: arguments or key",
		},
	},
	{
		"dedupe beside confirm",
		withFields(`    dedupe: arguments
    confirm: { message: Really? }
`),
		[]string{
			"c.yaml:6:13: tools.t.dedupe: cannot go with confirm, which asks about each call; remove one of the two",
		},
	},
	{
		"versioning by another name",
		withFields(`    versioning: latest
`),
		[]string{
			`c.yaml:6:17: tools.t.versioning: expected autoUpgrade, or a mapping with deployment and buildId, found the string "latest"`,
		},
	},
	{
		"version without a deployment",
		withFields(`    versioning: { buildId: "1" }
`),
		[]string{
			`c.yaml:6:5: tools.t.versioning.deployment: is missing; name the worker deployment, or write "versioning: autoUpgrade"`,
		},
	},
	{
		"version without a build ID",
		withFields(`    versioning: { deployment: orders }
`),
		[]string{
			"c.yaml:6:5: tools.t.versioning.buildId: is missing; name the build ID that workflows are pinned to",
		},
	},
	{
		"status that says nothing",
		withFields(`    status: {}
`),
		[]string{
			"c.yaml:6:13: tools.t.status: says nothing; name a query that the workflow answers, or write a message",
		},
	},
	{
		"total without done",
		withFields(`    status: { query: progress, total: query.total }
`),
		[]string{
			"c.yaml:6:39: tools.t.status.total: needs done beside it, the number of steps that are done",
		},
	},
	{
		"done that is text",
		withFields(`    status: { query: progress, done: "'three'" }
`),
		[]string{
			"c.yaml:6:38: tools.t.status.done: is of type string, and a number belongs here",
		},
	},
	{
		"done in braces",
		withFields(`    status: { query: progress, done: "${query.done}" }
`),
		[]string{
			"c.yaml:6:38: tools.t.status.done: is an expression as a whole; write it without ${ and }",
		},
	},
	{
		"query that is not asked",
		withFields(`    status: { message: "${query.state}" }
`),
		[]string{
			`c.yaml:6:24: tools.t.status.message: there is no query here; name the one to ask with "query: NAME" beside this`,
		},
	},
	{
		"arguments of a workflow that runs",
		withFields(`    status: { message: "for ${args.city}" }
`),
		[]string{
			"c.yaml:6:24: tools.t.status.message: the arguments of the call are not known any more; keep the ones needed in the tool's memo, and write memo.NAME",
		},
	},
	{
		"status that is no mapping",
		withFields(`    status: progress
`),
		[]string{
			`c.yaml:6:13: tools.t.status: expected a mapping, found the string "progress"`,
		},
	},
	{
		"misspelt field of status",
		withFields(`    status: { querry: progress, message: m }
`),
		[]string{
			`c.yaml:6:15: tools.t.status.querry: unknown field; did you mean "query"?`,
		},
	},
	{
		"questions as a list",
		withFields(`    inputs: [approve]
`),
		[]string{
			"c.yaml:6:13: tools.t.inputs: expected a mapping of names to questions, found a list",
		},
	},
	{
		"question with a name of other characters",
		withFields(`    inputs: { "go on": { when: true, message: m, accept: { signal: s }, decline: cancel } }
`),
		[]string{
			`c.yaml:6:24: tools.t.inputs."go on": "go on" is not a name for a question; use a letter, then letters, digits, _ and -, 64 at most`,
		},
	},
	{
		"question without a condition",
		withFields(`    inputs: { q: { message: m, accept: { signal: s }, decline: cancel } }
`),
		[]string{
			`c.yaml:6:15: tools.t.inputs.q.when: is missing; write the condition under which the workflow waits, such as "query.state == 'waiting'"`,
		},
	},
	{
		"question that asks nothing",
		withFields(`    inputs: { q: { when: true, accept: { signal: s }, decline: cancel } }
`),
		[]string{
			"c.yaml:6:15: tools.t.inputs.q.message: is missing; write the question to ask",
		},
	},
	{
		"question whose answers do nothing",
		withFields(`    inputs: { q: { when: true, message: m } }
`),
		[]string{
			"c.yaml:6:15: tools.t.inputs.q.accept: does nothing; say what an accepted answer does: name a signal or an update to send, or an activity to complete",
			`c.yaml:6:15: tools.t.inputs.q.decline: does nothing; say what an answer that is not accepted does: name a signal or an update to send, or an activity to complete, or write "decline: cancel"`,
		},
	},
	{
		"condition that is a number",
		withFields(`    inputs: { q: { when: size(activities), message: m, accept: { signal: s }, decline: cancel } }
`),
		[]string{
			"c.yaml:6:26: tools.t.inputs.q.when: is of type int, and a condition is true or false",
		},
	},
	{
		"condition with one equals sign",
		withFields(`    inputs:
      approve:
        query: state
        when: query = 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:9:15: tools.t.inputs.approve.when: character 7: = does not compare; write ==",
		},
	},
	{
		"condition with an open string",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:9:15: tools.t.inputs.approve.when: character 10: cannot read 'waiting; is a quote missing?",
		},
	},
	{
		"condition on a query that is not asked",
		withFields(`    inputs:
      approve:
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			`c.yaml:8:15: tools.t.inputs.approve.when: there is no query here; name the one to ask with "query: NAME" beside this`,
		},
	},
	{
		"condition with a misspelt variable",
		withFields(`    inputs:
      approve:
        query: state
        when: memmo.a == 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			`c.yaml:9:15: tools.t.inputs.approve.when: unknown variable "memmo"; did you mean "memo"?`,
		},
	},
	{
		"condition in braces",
		withFields(`    inputs:
      approve:
        query: state
        when: "${query == 'waiting'}"
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:9:15: tools.t.inputs.approve.when: is an expression as a whole; write it without ${ and }",
		},
	},
	{
		"condition on the answer",
		withFields(`    inputs:
      approve:
        query: state
        when: answer.yes
        message: Go on?
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:9:15: tools.t.inputs.approve.when: only the payload of accept has an answer",
		},
	},
	{
		"answer that does two things",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s, update: u }
        decline: cancel
`),
		[]string{
			"c.yaml:11:17: tools.t.inputs.approve.accept: signal and update do not go together; an answer does one thing",
		},
	},
	{
		"misspelt effect",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signl: s }
        decline: cancel
`),
		[]string{
			"c.yaml:11:17: tools.t.inputs.approve.accept: does nothing; say what an accepted answer does: name a signal or an update to send, or an activity to complete",
			`c.yaml:11:19: tools.t.inputs.approve.accept.signl: unknown field; did you mean "signal"?`,
		},
	},
	{
		"accept that cancels",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: cancel
        decline: cancel
`),
		[]string{
			`c.yaml:11:17: tools.t.inputs.approve.accept: expected a mapping with a signal, an update or an activity, found the string "cancel"`,
		},
	},
	{
		"decline that is another word",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: stop
`),
		[]string{
			`c.yaml:12:18: tools.t.inputs.approve.decline: expected cancel, or a mapping with a signal, an update or an activity, found the string "stop"`,
		},
	},
	{
		"decline of an activity that accept leaves alone",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: { activity: A }
`),
		[]string{
			"c.yaml:12:30: tools.t.inputs.approve.decline.activity: which one is meant is known only if accept completes it as well",
		},
	},
	{
		"decline of another activity",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { activity: A }
        decline: { activity: B }
`),
		[]string{
			`c.yaml:12:30: tools.t.inputs.approve.decline.activity: accept completes "A"; a question is about one activity`,
		},
	},
	{
		"once for activities",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        once: true
        accept: { activity: A }
        decline: { activity: A }
`),
		[]string{
			"c.yaml:11:15: tools.t.inputs.approve.once: has no meaning here: each activity is asked about once; remove it",
		},
	},
	{
		"payload with a field that is not asked for",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        schema: { type: object, properties: { reason: { type: string } } }
        accept: { signal: s, payload: { why: "${answer.reson}" } }
        decline: cancel
`),
		[]string{
			`c.yaml:12:46: tools.t.inputs.approve.accept.payload.why: ${answer.reson}: answer has no "reson"; did you mean "reason"?`,
		},
	},
	{
		"payload of a decline with an answer",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s }
        decline: { signal: s, payload: "${answer.reason}" }
`),
		[]string{
			"c.yaml:12:40: tools.t.inputs.approve.decline.payload: an answer that is not accepted has no form",
		},
	},
	{
		"payload with arguments of the call",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        accept: { signal: s, payload: [1, "${args.city}"] }
        decline: cancel
`),
		[]string{
			"c.yaml:11:43: tools.t.inputs.approve.accept.payload[1]: the arguments of the call are not known any more; keep the ones needed in the tool's memo, and write memo.NAME",
		},
	},
	{
		"form with nested fields",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        schema: { type: object, properties: { a: { type: object } } }
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:11:58: tools.t.inputs.approve.schema.properties.a.type: a form property is a string, number, integer, boolean or array; nested objects cannot be asked for",
		},
	},
	{
		"signal directly in a question",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        signal: s
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			"c.yaml:11:9: tools.t.inputs.approve.signal: a signal is sent by an answer: inputs.NAME.accept.signal",
		},
	},
	{
		"once that is no boolean",
		withFields(`    inputs:
      approve:
        query: state
        when: query == 'waiting'
        message: Go on?
        once: yes please
        accept: { signal: s }
        decline: cancel
`),
		[]string{
			`c.yaml:11:15: tools.t.inputs.approve.once: expected true or false, found the string "yes please"`,
		},
	},
	{
		"attach without an ID",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: {}
`,
		[]string{
			`c.yaml:5:5: tools.t.attach.workflowId: is missing; write the ID of the workflow to follow, such as "backfill-${args.date}"`,
		},
	},
	{
		"attach to anything",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "*" }
`,
		[]string{
			`c.yaml:5:27: tools.t.attach.workflowId: would let callers reach any workflow; begin it with text of its own, as in "backfill-${args.date}"`,
		},
	},
	{
		"attach to what the caller says",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "${args.id}" }
    input: { type: object, properties: { id: { type: string } } }
`,
		[]string{
			`c.yaml:5:27: tools.t.attach.workflowId: would let callers reach any workflow; begin it with text of its own, as in "backfill-${args.date}"`,
		},
	},
	{
		"attach to tasks of callers",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "mcp:*" }
`,
		[]string{
			`c.yaml:5:27: tools.t.attach.workflowId: workflows whose ID begins with "mcp:" are tasks of callers, and nobody else's to follow`,
		},
	},
	{
		"attach with a star inside",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-*-b" }
`,
		[]string{
			"c.yaml:5:27: tools.t.attach.workflowId: a * can stand only at its end",
		},
	},
	{
		"attach with an unknown argument",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-${args.id}" }
`,
		[]string{
			`c.yaml:5:27: tools.t.attach.workflowId: ${args.id}: args has no "id", nor anything else`,
		},
	},
	{
		"attach with other than ASCII",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "träge-*" }
`,
		[]string{
			`c.yaml:5:27: tools.t.attach.workflowId: "träge-" has other than printable ASCII characters, which Temporal does not take in IDs`,
		},
	},
	{
		"attach that allows something else",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-*", allow: [read, signal] }
`,
		[]string{
			`c.yaml:5:42: tools.t.attach.allow[0]: "read" is not something to allow; use answer or cancel`,
			`c.yaml:5:48: tools.t.attach.allow[1]: "signal" is not something to allow; use answer or cancel`,
		},
	},
	{
		"attach beside a workflow to start",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-*" }
    workflow: W
    taskQueue: q
    with: { a: 1 }
    memo: { a: 1 }
    retry: {}
`,
		[]string{
			"c.yaml:6:15: tools.t.workflow: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:7:16: tools.t.taskQueue: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:8:11: tools.t.with: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:9:11: tools.t.memo: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:10:12: tools.t.retry: has no meaning with attach, which follows a workflow that is there; remove one of the two",
		},
	},
	{
		"attach beside confirm and dedupe",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-*" }
    confirm: { message: Really? }
    dedupe: key
`,
		[]string{
			"c.yaml:6:14: tools.t.confirm: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:7:13: tools.t.dedupe: has no meaning with attach, which follows a workflow that is there; remove one of the two",
			"c.yaml:7:13: tools.t.dedupe: cannot go with confirm, which asks about each call; remove one of the two",
		},
	},
	{
		"attach whose callers may not do what the tool offers",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    attach: { workflowId: "a-*" }
    cancel: terminate
    inputs: { q: { when: true, message: m, accept: { signal: s }, decline: cancel } }
`,
		[]string{
			`c.yaml:6:13: tools.t.cancel: callers may not cancel; write "allow: [cancel]" in attach, or remove this`,
			`c.yaml:7:13: tools.t.inputs: callers may not answer; write "allow: [answer]" in attach, or remove this`,
			`c.yaml:7:76: tools.t.inputs.q.decline: callers may not cancel; write "allow: [answer, cancel]" in attach, or name what else a decline does`,
		},
	},
	{
		"neither workflow nor attach",
		`version: 1
defaults: { executionTimeout: 1h }
tools:
  t:
    title: T
`,
		[]string{
			"c.yaml:4:3: tools.t.workflow: is missing; name the workflow type to start",
			"c.yaml:4:3: tools.t.taskQueue: is missing; name the task queue of the workflow's workers here or in defaults",
		},
	},
}

func TestMistakesSayWhereAndWhatIsRight(t *testing.T) {
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			_, err := catalog.Parse("c.yaml", []byte(m.yaml))
			require.Error(t, err)
			assert.Equal(t, m.want, strings.Split(err.Error(), "\n"))
		})
	}
}
