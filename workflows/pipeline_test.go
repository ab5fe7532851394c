//go:build unix

package workflows_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/temporal"

	"taskbridge/activities"
	"taskbridge/signals"
	"taskbridge/workflows"
)

// arguments are a client's arguments as JSON, by name.
type arguments map[string]string

// newPipelineRun prepares a run of the real workflow with its real activity.
func newPipelineRun(t *testing.T) *run {
	t.Helper()
	r := newRun(t, workflows.Pipeline)
	r.RegisterActivity(&activities.Commands{Grace: time.Second})
	return r
}

func pipelineInput(spec workflows.PipelineSpec, args arguments) workflows.PipelineInput {
	in := workflows.PipelineInput{Pipeline: spec, Arguments: map[string]json.RawMessage{}}
	for name, value := range args {
		in.Arguments[name] = json.RawMessage(value)
	}
	return in
}

// ended is a finished pipeline: the tool result taken apart.
type ended struct {
	workflows.PipelineResult
	text    string
	isError bool
}

// finish runs a pipeline to its end.
func finish(r *run, spec workflows.PipelineSpec, args arguments) ended {
	r.t.Helper()
	tool := result[*signals.ToolResult](r, pipelineInput(spec, args))
	e := ended{isError: tool.IsError}
	require.NoError(r.t, json.Unmarshal(tool.StructuredContent, &e.PipelineResult))
	require.Len(r.t, tool.Content, 1)
	var block struct{ Type, Text string }
	require.NoError(r.t, json.Unmarshal(tool.Content[0], &block))
	require.Equal(r.t, "text", block.Type)
	e.text = block.Text
	return e
}

// runSteps runs a pipeline of steps in a directory to its end.
func runSteps(t *testing.T, dir string, steps ...workflows.Step) ended {
	t.Helper()
	return finish(newPipelineRun(t), workflows.PipelineSpec{Steps: steps, Dir: dir}, nil)
}

// statuses are how the steps ended, in order.
func (e ended) statuses() (statuses []workflows.StepStatus) {
	for _, step := range e.Steps {
		statuses = append(statuses, step.Status)
	}
	return statuses
}

func (e ended) step(name string) workflows.StepResult {
	for _, step := range e.Steps {
		if step.Name == name {
			return step
		}
	}
	return workflows.StepResult{}
}

// timeless is the text without durations.
func (e ended) timeless() string {
	return regexp.MustCompile(` in [0-9.]+m?s`).ReplaceAllString(e.text, "")
}

func shell(name, script string, needs ...string) workflows.Step {
	return workflows.Step{Name: name, Run: []string{"sh", "-c", script}, Needs: needs}
}

func question(name string, needs ...string) workflows.Step {
	return workflows.Step{Name: name, Ask: &workflows.AskStep{Message: "Deploy?"}, Needs: needs}
}

func exitCode(code int) *int { return &code }

func TestPipelineFollowsNeeds(t *testing.T) {
	dir := t.TempDir()
	log := func(name string, needs ...string) workflows.Step { return shell(name, "echo "+name+" >>log", needs...) }
	got := runSteps(t, dir,
		log("last", "left", "right"),
		log("left", "first"),
		log("right", "left"),
		log("first"),
	)
	assert.False(t, got.isError)
	assert.Equal(t, workflows.StepSucceeded, got.Status)
	assert.Equal(t, "Pipeline succeeded.\n- last: succeeded\n- left: succeeded\n- right: succeeded\n- first: succeeded\n", got.timeless())
	order, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	assert.Equal(t, "first\nleft\nright\nlast\n", string(order))
}

func TestIndependentStepsRunInParallel(t *testing.T) {
	meet := func(own, other string) string {
		return "touch " + own + "; until [ -e " + other + " ]; do sleep 0.05; done"
	}
	run := newPipelineRun(t)
	steps := []workflows.Step{shell("a", meet("a", "b")), shell("b", meet("b", "a"))}
	for i := range steps {
		steps[i].Timeout = workflows.Duration(30 * time.Second)
	}
	got := finish(run, workflows.PipelineSpec{Steps: steps, Dir: t.TempDir()}, nil)
	assert.Equal(t, []workflows.StepStatus{"succeeded", "succeeded"}, got.statuses())

	require.NotEmpty(t, run.published)
	assert.Equal(t, "a (1/2)", run.published[0].StatusMessage)
	assert.Equal(t, "a (1/2), b (2/2)", run.published[1].StatusMessage)
}

func TestAFailureSkipsWhatNeedsIt(t *testing.T) {
	got := runSteps(t, t.TempDir(),
		shell("vet", "true"),
		shell("test", "echo FAIL; echo why >&2; exit 3"),
		shell("pack", "true", "vet", "test"),
		shell("publish", "true", "pack"),
		shell("docs", "echo done", "vet"),
	)
	assert.True(t, got.isError)
	assert.Equal(t, workflows.StepFailed, got.Status)
	for i := range got.Steps {
		got.Steps[i].DurationMs = 0
	}
	assert.Equal(t, []workflows.StepResult{
		{Name: "vet", Status: "succeeded", ExitCode: exitCode(0), Attempts: 1},
		{Name: "test", Status: "failed", ExitCode: exitCode(3), Attempts: 1, Output: "FAIL\nwhy\n", Message: "exit status 3"},
		{Name: "pack", Status: "skipped", Message: "needs test, which did not succeed"},
		{Name: "publish", Status: "skipped", Message: "needs pack, which did not succeed"},
		{Name: "docs", Status: "succeeded", ExitCode: exitCode(0), Attempts: 1, Output: "done\n"},
	}, got.Steps)
	assert.Equal(t, `Pipeline failed.
- vet: succeeded
- test: failed: exit status 3
    FAIL
    why
- pack: skipped: needs test, which did not succeed
- publish: skipped: needs pack, which did not succeed
- docs: succeeded
    done
`, got.timeless())
}

func TestContinueOnError(t *testing.T) {
	t.Run("forgives a failure", func(t *testing.T) {
		lint := shell("lint", "exit 1")
		lint.ContinueOnError = true
		got := runSteps(t, "", lint, shell("test", "true", "lint"))
		assert.False(t, got.isError)
		assert.Equal(t, workflows.StepSucceeded, got.Status)
		assert.Equal(t, []workflows.StepStatus{"failed", "succeeded"}, got.statuses())
		assert.Contains(t, got.timeless(), "- lint: failed: exit status 1\n")
	})
	t.Run("forgives a timeout", func(t *testing.T) {
		slow := shell("slow", "sleep 300")
		slow.ContinueOnError, slow.Timeout = true, workflows.Duration(100*time.Millisecond)
		got := runSteps(t, "", slow, shell("test", "true", "slow"))
		assert.False(t, got.isError)
		assert.Equal(t, []workflows.StepStatus{"timed_out", "succeeded"}, got.statuses())
	})
	t.Run("forgives no refusal", func(t *testing.T) {
		approve := question("approve")
		approve.ContinueOnError = true
		run := newPipelineRun(t)
		run.answers = map[string]string{"approve-1": `{"action":"decline"}`}
		got := finish(run, workflows.PipelineSpec{Steps: []workflows.Step{approve, shell("deploy", "true", "approve")}}, nil)
		assert.True(t, got.isError)
		assert.Equal(t, []workflows.StepStatus{"declined", "skipped"}, got.statuses())
	})
	t.Run("forgives nothing that came before", func(t *testing.T) {
		deploy := shell("deploy", "true", "test")
		deploy.ContinueOnError = true
		got := runSteps(t, "", shell("test", "false"), deploy, shell("tell", "true", "deploy"))
		assert.True(t, got.isError)
		assert.Equal(t, []workflows.StepStatus{"failed", "skipped", "skipped"}, got.statuses())
	})
}

func TestRetries(t *testing.T) {
	// Each attempt appends a line; the third succeeds.
	flaky := `echo x >>tries; [ "$(wc -l <tries)" -ge 3 ]`
	tests := []struct {
		name             string
		script           string
		retries          int
		status           workflows.StepStatus
		attempts, exit   int
		message, summary string
	}{
		{"until it succeeds", flaky, 5, "succeeded", 3, 0, "", "- flaky: succeeded, attempt 3\n"},
		{"until they are used up", flaky, 1, "failed", 2, 1, "exit status 1", "- flaky: failed, attempt 2: exit status 1\n"},
		{"none needed", "true", 5, "succeeded", 1, 0, "", "- flaky: succeeded\n"},
		{"none wanted", "exit 4", 0, "failed", 1, 4, "exit status 4", "- flaky: failed: exit status 4\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			step := shell("flaky", test.script)
			step.Retries = test.retries
			got := runSteps(t, t.TempDir(), step)
			assert.Equal(t, test.status, got.Steps[0].Status)
			assert.Equal(t, test.attempts, got.Steps[0].Attempts)
			assert.Equal(t, exitCode(test.exit), got.Steps[0].ExitCode)
			assert.Equal(t, test.message, got.Steps[0].Message)
			assert.Contains(t, got.timeless(), test.summary)
			assert.Equal(t, test.status != "succeeded", got.isError)
			if test.attempts > 1 {
				assert.GreaterOrEqual(t, got.Steps[0].DurationMs, int64(test.attempts-1)*1000, "a pause before each retry")
			}
		})
	}
}

func TestStepsWaitForTheLastAttemptOfWhatTheyNeed(t *testing.T) {
	flaky := shell("flaky", `echo try >>log; [ "$(wc -l <log)" -ge 3 ]`)
	flaky.Retries, flaky.ContinueOnError = 2, true
	dir := t.TempDir()
	got := runSteps(t, dir, flaky, shell("next", "echo next >>log", "flaky"))
	assert.Equal(t, []workflows.StepStatus{"succeeded", "succeeded"}, got.statuses())
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	require.NoError(t, err)
	assert.Equal(t, "try\ntry\ntry\nnext\n", string(log))
}

func TestTimeoutEndsAnAttempt(t *testing.T) {
	step := shell("slow", "sleep 300")
	step.Timeout, step.Retries = workflows.Duration(200*time.Millisecond), 1
	got := runSteps(t, "", step)
	assert.True(t, got.isError)
	assert.Equal(t, []workflows.StepStatus{"timed_out"}, got.statuses())
	assert.Equal(t, 2, got.Steps[0].Attempts)
	assert.Contains(t, got.timeless(), "- slow: timed_out, attempt 2: the command took too long and was stopped\n")
}

func TestADeadlySignalIsNamed(t *testing.T) {
	got := runSteps(t, "", shell("crash", "kill -KILL $$"))
	assert.Equal(t, "ended by signal: killed", got.Steps[0].Message)
	assert.Equal(t, exitCode(-1), got.Steps[0].ExitCode)
}

func TestACommandThatCannotRunIsNotRetried(t *testing.T) {
	got := runSteps(t, "", workflows.Step{Name: "build", Run: []string{"no-such-program"}, Retries: 5})
	assert.True(t, got.isError)
	step := got.Steps[0]
	assert.Equal(t, workflows.StepFailed, step.Status)
	assert.Equal(t, 1, step.Attempts)
	assert.Nil(t, step.ExitCode)
	assert.Contains(t, step.Message, `cannot run "no-such-program" on this worker`)
	assert.NotContains(t, step.Message, "activity error", "the SDK's frame says nothing to a client")
}

func TestNoShellSeesACommandUnlessTheOperatorSaysSo(t *testing.T) {
	dir := t.TempDir()
	got := runSteps(t, dir, workflows.Step{Name: "print", Run: []string{"printf", "%s|", "$HOME", "$(touch evil)", "a;b"}})
	assert.Equal(t, "$HOME|$(touch evil)|a;b|", got.Steps[0].Output)
	assert.NoFileExists(t, filepath.Join(dir, "evil"))
}

func TestDirectoriesAndEnvironmentOfSteps(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, os.Mkdir(filepath.Join(dir, "sub"), 0o755))
	print := shell("print", `printf '%s %s %s\n' "$OWN" "$SHARED" "$CHANGED"; pwd -P`)
	print.Dir, print.Env = "sub", map[string]string{"OWN": "1", "CHANGED": "step"}
	got := finish(newPipelineRun(t), workflows.PipelineSpec{
		Steps: []workflows.Step{print},
		Dir:   dir,
		Env:   map[string]string{"SHARED": "2", "CHANGED": "pipeline"},
	}, nil)
	assert.Equal(t, "1 2 step\n"+filepath.Join(dir, "sub")+"\n", got.Steps[0].Output)
}

func TestArgumentsReachCommandsAsVariables(t *testing.T) {
	tests := []struct{ name, argument, value, variable, want string }{
		{"text", "package", `"./..."`, "ARG_PACKAGE", "./..."},
		{"number", "n", `12345678901234567890`, "ARG_N", "12345678901234567890"},
		{"boolean", "dry", `true`, "ARG_DRY", "true"},
		{"list", "tags", `["a", "b c"]`, "ARG_TAGS", `["a","b c"]`},
		{"object", "o", `{"k": 1}`, "ARG_O", `{"k":1}`},
		{"null is unset", "none", `null`, "ARG_NONE", "unset"},
		{"empty is set", "none", `""`, "ARG_NONE", ""},
		{"camel case", "dryRun", `1`, "ARG_DRYRUN", "1"},
		{"dashes and dots", "dry-run.v2", `1`, "ARG_DRY_RUN_V2", "1"},
		{"other alphabets", "größe", `1`, "ARG_GR__E", "1"},
		{"name of a variable", "PATH", `"/evil"`, "ARG_PATH", "/evil"},
		{"name with an equals sign", "A=B", `1`, "ARG_A_B", "1"},
		{"dollar", "v", `"$HOME ${HOME}"`, "ARG_V", "$HOME ${HOME}"},
		{"command substitution", "v", `"$(touch evil)"`, "ARG_V", "$(touch evil)"},
		{"backticks", "v", "\"`touch evil`\"", "ARG_V", "`touch evil`"},
		{"end of a command", "v", `"; touch evil; #"`, "ARG_V", "; touch evil; #"},
		{"end of quotes", "v", `"\" ' ; touch evil \" '"`, "ARG_V", `" ' ; touch evil " '`},
		{"line ends", "v", `"a\n\rtouch evil\n"`, "ARG_V", "a\n\rtouch evil\n"},
		{"option", "v", `"--help"`, "ARG_V", "--help"},
		{"backslash and format", "v", `"%s\\n%d"`, "ARG_V", `%s\n%d`},
		{"glob", "v", `"* ?"`, "ARG_V", "* ?"},
		{"angle brackets", "v", `"<a> & b"`, "ARG_V", "<a> & b"},
		{"other letters", "v", `"日本 é 🚀"`, "ARG_V", "日本 é 🚀"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			spec := workflows.PipelineSpec{Dir: dir, Steps: []workflows.Step{shell("print", `printf '%s' "${`+test.variable+`-unset}"`)}}
			got := finish(newPipelineRun(t), spec, arguments{test.argument: test.value})
			assert.Equal(t, test.want, got.Steps[0].Output)
			assert.NoFileExists(t, filepath.Join(dir, "evil"))
		})
	}
}

func TestArgumentsThatNoVariableCanHoldFailTheStep(t *testing.T) {
	tests := []struct{ name, value, want string }{
		{"NUL", `"a\u0000b"`, "env ARG_V contains a NUL character"},
		{"too long", strconv.Quote(strings.Repeat("x", 1<<20)), "argument list too long"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			spec := workflows.PipelineSpec{Steps: []workflows.Step{{Name: "print", Run: []string{"true"}, Retries: 3}}}
			got := finish(newPipelineRun(t), spec, arguments{"v": test.value})
			assert.True(t, got.isError)
			assert.Equal(t, 1, got.Steps[0].Attempts)
			assert.Contains(t, got.Steps[0].Message, test.want)
			assert.Contains(t, got.text, test.want)
		})
	}
}

func TestTwoArgumentsOfOneVariableAlwaysGiveTheSame(t *testing.T) {
	spec := workflows.PipelineSpec{Steps: []workflows.Step{shell("print", `printf '%s' "$ARG_A_B"`)}}
	for range 10 {
		got := finish(newPipelineRun(t), spec, arguments{"a-b": `1`, "a.b": `2`, "a_b": `3`})
		require.Equal(t, "3", got.Steps[0].Output, "the last name in byte order wins")
	}
}

func TestAskSteps(t *testing.T) {
	tests := []struct {
		name, result string
		status       workflows.StepStatus
		message      string
	}{
		{"approved", `{"action":"accept","content":{"approve":true,"comment":"fine"}}`, "succeeded", ""},
		{"not approved", `{"action":"accept","content":{"approve":false,"comment":"later"}}`, "declined", "approve was not approved"},
		{"declined", `{"action":"decline"}`, "declined", "approve was declined (decline)"},
		{"dismissed", `{"action":"cancel"}`, "declined", "approve was declined (cancel)"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			run := newPipelineRun(t)
			run.answers = map[string]string{"approve-1": test.result}
			got := finish(run, workflows.PipelineSpec{
				Steps: []workflows.Step{question("approve"), shell("deploy", "touch deployed", "approve"), shell("other", "true")},
				Dir:   dir,
			}, nil)
			assert.Equal(t, test.status, got.step("approve").Status)
			assert.Equal(t, test.message, got.step("approve").Message)
			assert.Equal(t, workflows.StepSucceeded, got.step("other").Status)
			approved := test.status == workflows.StepSucceeded
			assert.Equal(t, !approved, got.isError)
			if approved {
				assert.FileExists(t, filepath.Join(dir, "deployed"))
				return
			}
			assert.NoFileExists(t, filepath.Join(dir, "deployed"))
			assert.Contains(t, got.timeless(), "- approve: declined: "+test.message+"\n")
			assert.Contains(t, got.timeless(), "- deploy: skipped: needs approve, which did not succeed\n")
		})
	}
}

func TestAnApprovalHasAForm(t *testing.T) {
	run := newPipelineRun(t)
	run.answers = map[string]string{
		"approve-1": `{"action":"accept","content":{"approve":"yes"}}`,
		"approve-2": `{"action":"accept","content":{"approve":true}}`,
	}
	got := finish(run, workflows.PipelineSpec{Steps: []workflows.Step{question("approve")}}, nil)
	assert.Equal(t, []workflows.StepStatus{"succeeded"}, got.statuses())
	assert.Equal(t, map[string]json.RawMessage{"approve": json.RawMessage("true")}, got.Steps[0].Answer)

	var asked signals.InputRequest
	for _, state := range run.published {
		if request, ok := state.InputRequests["approve-1"]; ok {
			asked = request
			assert.Equal(t, "approve (1/1)", state.StatusMessage)
		}
	}
	assert.JSONEq(t, `{"mode":"form","message":"Deploy?","requestedSchema":{"type":"object","properties":{
		"approve":{"type":"boolean","title":"Approve","description":"Go on with the pipeline","default":true},
		"comment":{"type":"string","title":"Comment","maxLength":2000}},"required":["approve"]}}`, string(asked.Params))
}

func TestAnswersReachLaterCommandsAsVariables(t *testing.T) {
	dir := t.TempDir()
	ask := question("release-notes", "before")
	ask.Ask.Schema = json.RawMessage(`{"type":"object","properties":{"title":{"type":"string"},"copies":{"type":"integer"}},"required":["title"]}`)
	run := newPipelineRun(t)
	run.answers = map[string]string{
		"release-notes-1": `{"action":"accept","content":{"title":"\"; $(touch evil) -n","copies":3,"none":null}}`,
	}
	print := `printf '%s|%s|%s' "${ASK_RELEASE_NOTES_TITLE-unset}" "${ASK_RELEASE_NOTES_COPIES-unset}" "${ASK_RELEASE_NOTES_NONE-unset}"`
	got := finish(run, workflows.PipelineSpec{Dir: dir, Steps: []workflows.Step{
		shell("before", print),
		ask,
		shell("after", print, "release-notes"),
	}}, nil)
	assert.Equal(t, "unset|unset|unset", got.step("before").Output)
	assert.Equal(t, `"; $(touch evil) -n|3|unset`, got.step("after").Output)
	assert.NoFileExists(t, filepath.Join(dir, "evil"))
}

func TestAQuestionThatCannotBeAskedFailsItsStep(t *testing.T) {
	step := question("approve")
	step.Ask.Schema = json.RawMessage(`{"type":"object","$ref":"#/$defs/none"}`)
	got := runSteps(t, "", step)
	assert.True(t, got.isError)
	assert.Equal(t, workflows.StepFailed, got.Steps[0].Status)
	assert.Contains(t, got.Steps[0].Message, `question "approve": schema`)
}

func TestOutputIsATail(t *testing.T) {
	got := runSteps(t, "", shell("talk", `i=0; while [ $i -lt 3000 ]; do echo "line $i é"; i=$((i+1)); done; printf '\351'; exit 1`))
	step := got.Steps[0]
	assert.Positive(t, step.OmittedBytes)
	assert.Equal(t, fmt.Sprintf("… (%d bytes omitted)", step.OmittedBytes), lines(step.Output)[0], "the cut is told")
	assert.Regexp(t, `^line \d+ é$`, lines(step.Output)[1], "and is at the start of a line")
	assert.True(t, strings.HasSuffix(step.Output, "line 2999 é\n\uFFFD"))
	assert.True(t, utf8.ValidString(step.Output))
	assert.InDelta(t, 16<<10, len(step.Output), 200)
	assert.Equal(t, len(lines(step.Output))+3, len(lines(got.text)), "the text shows all of it, below its two lines")
}

func lines(text string) []string { return strings.Split(text, "\n") }

func TestTheTextShowsLittleOfWhatSucceeded(t *testing.T) {
	got := runSteps(t, "", shell("count", `i=1; while [ $i -le 30 ]; do echo $i; i=$((i+1)); done`), shell("rest", "true"))
	assert.Equal(t, "Pipeline succeeded.\n- count: succeeded\n    …\n    21\n    22\n    23\n    24\n    25\n    26\n    27\n    28\n"+
		"    29\n    30\n- rest: succeeded\n", got.timeless())
	assert.Len(t, lines(got.Steps[0].Output), 31, "all of it is in the structured content")
}

// Temporal refuses payloads above 2 MiB, and control characters are six bytes each in JSON.
func TestTheResultFitsIntoAPayload(t *testing.T) {
	var steps []workflows.Step
	for i := range 20 {
		steps = append(steps, shell(fmt.Sprintf("noise-%d", i), `head -c 20000 /dev/zero | tr '\0' '\001'; exit 1`))
	}
	run := newPipelineRun(t)
	tool := result[*signals.ToolResult](run, pipelineInput(workflows.PipelineSpec{Steps: steps}, nil))
	encoded, err := json.Marshal(tool)
	require.NoError(t, err)
	assert.Less(t, len(encoded), 2<<20)
	assert.Greater(t, len(encoded), 1<<20, "the bound is not needlessly tight")
}

func TestCancellationWhileAsking(t *testing.T) {
	dir := t.TempDir()
	run := newPipelineRun(t)
	run.at(time.Hour, run.CancelWorkflow)
	run.start(pipelineInput(workflows.PipelineSpec{
		Steps: []workflows.Step{question("approve"), shell("deploy", "touch deployed", "approve"), shell("other", "true")},
		Dir:   dir,
	}, nil))
	var canceled *temporal.CanceledError
	require.ErrorAs(t, run.GetWorkflowError(), &canceled)
	assert.Empty(t, run.published[len(run.published)-1].InputRequests, "the question is withdrawn")
	assert.NoFileExists(t, filepath.Join(dir, "deployed"))
}

func TestCancellationBetweenRetries(t *testing.T) {
	dir := t.TempDir()
	step := shell("flaky", "echo x >>tries; exit 1")
	step.Retries = 1000
	run := newPipelineRun(t)
	run.SetOnTimerScheduledListener(func(string, time.Duration) { run.CancelWorkflow() })
	run.start(pipelineInput(workflows.PipelineSpec{Steps: []workflows.Step{step}, Dir: dir}, nil))
	var canceled *temporal.CanceledError
	require.ErrorAs(t, run.GetWorkflowError(), &canceled)
	tries, err := os.ReadFile(filepath.Join(dir, "tries"))
	require.NoError(t, err)
	assert.Equal(t, "x\n", string(tries))
}

func TestABadPipelineFailsWithAllItsMistakes(t *testing.T) {
	run := newPipelineRun(t)
	run.start(pipelineInput(workflows.PipelineSpec{Steps: []workflows.Step{{Name: "a"}, {Name: "a", Needs: []string{"x"}}}}, nil))
	var application *temporal.ApplicationError
	require.ErrorAs(t, run.GetWorkflowError(), &application)
	assert.Equal(t, "InvalidPipeline", application.Type())
	assert.True(t, application.NonRetryable())
	assert.Contains(t, application.Message(), "the name is taken by an earlier step")
	assert.Contains(t, application.Message(), `needs unknown step "x"`)
}

func TestPipelineTellsItsProgress(t *testing.T) {
	run := newPipelineRun(t)
	run.answers = map[string]string{"approve-1": `{"action":"accept","content":{"approve":true}}`}
	finish(run, workflows.PipelineSpec{Steps: []workflows.Step{
		shell("a", "true"), question("approve", "a"), shell("b", "exit 1", "approve"), shell("c", "true", "b"),
	}}, nil)
	type told struct {
		message string
		done    float64
	}
	var all []told
	for _, state := range run.published {
		require.NotNil(t, state.Progress)
		assert.EqualValues(t, 4, state.Progress.Total)
		all = append(all, told{state.StatusMessage, state.Progress.Done})
	}
	assert.Equal(t, []told{
		{"a (1/4)", 0},
		{"approve (2/4)", 1},
		{"approve (2/4)", 1}, // with its question
		{"approve (2/4)", 1}, // without
		{"b (3/4)", 2},
		{"b (3/4)", 4}, // it failed, and c was skipped
	}, all)
}

func TestPipelineCountsSkippedStepsWhileOthersRun(t *testing.T) {
	run := newPipelineRun(t)
	run.at(time.Minute, func() {
		assert.Equal(t, "long (3/3)", run.state().StatusMessage)
		assert.Equal(t, &signals.Progress{Done: 2, Total: 3}, run.state().Progress)
		run.answer("long-1", `{"action":"decline"}`)
	})
	finish(run, workflows.PipelineSpec{Steps: []workflows.Step{
		shell("fail", "exit 1"), shell("skip", "true", "fail"), question("long"),
	}}, nil)
	assert.Equal(t, &signals.Progress{Done: 3, Total: 3}, run.state().Progress)
}
