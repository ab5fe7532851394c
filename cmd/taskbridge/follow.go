package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"taskbridge/internal/mcpclient"
)

// target is the server that a command talks to.
type target struct {
	url string
	// flags are the --url to repeat in commands that a person is told to run.
	flags string
}

func (t *target) addFlags(cmd *cobra.Command, url string) {
	cmd.Flags().StringVar(&t.url, "url", url, "MCP endpoint of the server; the default is $TASKBRIDGE_URL")
}

// client is a client of the target. It takes up the flags, so call it when they are parsed.
func (t *target) client(cmd *cobra.Command) (*mcpclient.Client, error) {
	parsed, err := url.Parse(t.url)
	if err != nil || parsed.Scheme != "http" && parsed.Scheme != "https" || parsed.Host == "" {
		return nil, usageErrorf("%q is no MCP endpoint: write its URL, such as http://127.0.0.1:8080/mcp", t.url)
	}
	if cmd.Flags().Changed("url") {
		t.flags = " --url " + shellQuote(t.url)
	}
	return mcpclient.New(t.url, http.DefaultClient), nil
}

// command is a command line for a person to run.
func (t *target) command(words ...string) string {
	return "taskbridge " + strings.Join(words, " ") + t.flags
}

// followOptions are the flags of commands that follow a task.
type followOptions struct {
	target
	answers []string
	yes     bool
	json    bool
	timeout time.Duration
}

func (o *followOptions) addFlags(cmd *cobra.Command, url string) {
	o.target.addFlags(cmd, url)
	flags := cmd.Flags()
	flags.StringArrayVar(&o.answers, "answer", nil, "answer a question beforehand, as `KEY=JSON`; repeatable")
	flags.BoolVar(&o.yes, "yes", false, "accept every form with its defaults; required y/n fields without one are answered y")
	flags.BoolVar(&o.json, "json", false, "print one JSON document instead of text: the task, or the result of a tool that made none")
	flags.DurationVar(&o.timeout, "timeout", 0, "stop following after this time, such as 30s or 2h; the task goes on")
}

// session follows tasks of one server for a person or a script.
type session struct {
	streams
	target
	client   *mcpclient.Client
	progress *progress
	answers  *answerer
	// answered are the keys of the task that have been answered. The server may show them for a while.
	answered map[string]bool
	json     bool
}

func (o *followOptions) session(cmd *cobra.Command, s streams) (*session, error) {
	client, err := o.client(cmd)
	if err != nil {
		return nil, err
	}
	given, err := parseAnswers(o.answers)
	if err != nil {
		return nil, err
	}
	answers := &answerer{given: given, yes: o.yes, used: map[string]bool{}}
	if s.canAsk() {
		server, _ := url.Parse(client.Endpoint()) // has been parsed before
		answers.person = &prompter{lines: newLineReader(s.In), out: s.Err, from: server.Host}
	}
	return &session{
		streams: s, target: o.target, client: client, progress: newProgress(s), answers: answers,
		answered: map[string]bool{}, json: o.json,
	}, nil
}

// errTimeout is why a context ended that --timeout bounds.
var errTimeout = errors.New("--timeout is over")

func (o *followOptions) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.timeout <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.timeout, errTimeout)
}

func timedOut(ctx context.Context) bool { return errors.Is(context.Cause(ctx), errTimeout) }

// minPoll is how often a task is asked for at most.
const minPoll = 200 * time.Millisecond

func pollInterval(task *mcpclient.Task) time.Duration {
	if task.PollIntervalMs == 0 {
		return time.Second
	}
	return max(task.PollInterval(), minPoll)
}

// follow shows a task and answers its questions until it ends. It returns the task as it was last seen, even with an
// error.
func (c *session) follow(ctx context.Context, task *mcpclient.Task) (*mcpclient.Task, error) {
	defer c.progress.clear()
	listening, stop := context.WithCancel(ctx)
	defer stop()
	news := c.listen(listening, task.ID)
	for !task.Status.Terminal() {
		c.progress.show(describe(task), task.CreatedAt)
		interval := pollInterval(task)
		answered, err := c.answerAll(ctx, task)
		if err != nil {
			return task, err
		}
		if answered > 0 {
			interval = minPoll
		}
		if err := c.progress.waitForNews(ctx, interval, news); err != nil {
			return task, err
		}
		now, err := c.get(ctx, task)
		if err != nil {
			return task, err
		}
		task = now
	}
	return task, nil
}

// listen tells when the server pushes that a task has changed. There are no news from one that cannot, or not for now: they
// save time, and polling goes on.
func (c *session) listen(ctx context.Context, id string) <-chan struct{} {
	news := make(chan struct{}, 1)
	go func() {
		_ = c.client.Listen(ctx, id, func() {
			select {
			case news <- struct{}{}:
			default: // the last ones have not been looked at yet
			}
		})
	}()
	return news
}

// get is the task now. It bears with a server that is away for a while: tasks outlive it.
func (c *session) get(ctx context.Context, task *mcpclient.Task) (*mcpclient.Task, error) {
	const (
		patience = 30 * time.Second
		pause    = time.Second
		enough   = 20 * time.Second // for one answer
	)
	giveUp := time.Now().Add(patience)
	for {
		var now *mcpclient.Task
		var err error
		c.progress.during(func() {
			bounded, cancel := context.WithTimeout(ctx, enough)
			defer cancel()
			now, err = c.client.GetTask(bounded, task.ID)
		})
		if err == nil || ctx.Err() != nil || !mayPass(err) {
			return now, err
		}
		if time.Now().After(giveUp) {
			return nil, fmt.Errorf("%w; task %s goes on: %s", err, task.ID, c.command("task", "watch", task.ID))
		}
		c.progress.show("the server does not answer; trying again", task.CreatedAt)
		if err := c.progress.wait(ctx, pause); err != nil {
			return nil, err
		}
	}
}

// mayPass reports whether a request may succeed when it is repeated.
func mayPass(err error) bool {
	var refused *mcpclient.Error
	return !errors.As(err, &refused) || refused.Code == mcpclient.CodeInternalError
}

// answerAll answers a task's open questions, and says how many it did. Those that nobody can answer end it with
// exitInput.
func (c *session) answerAll(ctx context.Context, task *mcpclient.Task) (int, error) {
	count, open := 0, mcpclient.Requests{}
	for _, key := range sortedKeys(task.InputRequests) {
		if c.answered[key] {
			continue
		}
		c.progress.clear()
		request := task.InputRequests[key]
		response, err := c.answers.to(ctx, key, request)
		if errors.Is(err, errUnanswered) {
			open[key] = request
			continue
		}
		if err != nil {
			return count, err
		}
		err = c.client.UpdateTask(ctx, task.ID, map[string]jsonValue{key: response})
		if err != nil && (c.answers.person == nil || mayPass(err)) {
			return count, err
		}
		if err != nil { // the person has the next try when the task is seen again
			c.progress.say("! %v", err)
			continue
		}
		c.answered[key] = true
		count++
	}
	if len(open) > 0 {
		return count, c.leaveOpen(task.ID, open)
	}
	return count, nil
}

// leaveOpen tells how to answer questions of a task from elsewhere.
func (c *session) leaveOpen(id string, open mcpclient.Requests) error {
	words := []string{"task", "answer", id}
	for _, key := range sortedKeys(open) {
		words = append(words, exampleAnswer(key, open[key]))
	}
	c.progress.say("%s\nthen follow it with: %s", openQuestions(open, c.command(words...)), c.command("task", "watch", id))
	return exitError{exitInput, fmt.Errorf("task %s needs input; it goes on when it has it", id)}
}

// goesOn ends a command that stops following a task.
func (c *session) goesOn(ctx context.Context, id string) error {
	code := exitInterrupted
	if timedOut(ctx) {
		code = exitTimeout
	}
	return exitError{code, fmt.Errorf("task %s goes on; follow it with: %s", id, c.command("task", "watch", id))}
}

// cancel cancels a task after Ctrl-C and waits for its end, or for another Ctrl-C. It returns the task as it was last
// seen.
func (c *session) cancel(ctx context.Context, task *mcpclient.Task) (*mcpclient.Task, error) {
	again, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	c.progress.say("cancelling task %s… (Ctrl-C to stop waiting)", task.ID)
	err := c.requestCancel(again, task.ID)
	for err == nil && !task.Status.Terminal() {
		c.progress.show(describeCancelling(task), task.CreatedAt)
		var now *mcpclient.Task
		if err = c.progress.wait(again, minPoll); err == nil {
			now, err = c.get(again, task)
		}
		if err == nil {
			task = now
		}
	}
	c.progress.clear()
	switch {
	case again.Err() != nil:
		err = fmt.Errorf("task %s may still run; see %s", task.ID, c.command("task", "get", task.ID))
	case err != nil:
		err = fmt.Errorf("task %s may still run: cancelling it: %w", task.ID, err)
	default:
		c.progress.say("task %s is %s", task.ID, printable(describe(task), false))
	}
	return task, exitError{exitInterrupted, err}
}

func (c *session) requestCancel(ctx context.Context, id string) error {
	const enough = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	return c.client.CancelTask(ctx, id)
}

// finish prints how a task was last seen and gives the command its exit status. err is why it was not followed to its
// end.
func (c *session) finish(task *mcpclient.Task, err error) error {
	if c.json {
		if err := c.print(string(task.Raw) + "\n"); err != nil {
			return err
		}
	}
	if err != nil {
		return failed(err)
	}
	switch task.Status {
	case mcpclient.Completed:
		return c.finishResult(task.Result)
	case mcpclient.Failed:
		return exitError{exitFailed, fmt.Errorf("task %s failed: %w", task.ID, task.Error)}
	}
	return exitError{exitCancelled, fmt.Errorf("task %s is %s", task.ID, printable(describe(task), false))}
}

// finishResult prints a result, unless its JSON has been printed: on stdout, or on stderr if it is a tool's error.
func (c *session) finishResult(result *mcpclient.Result) error {
	switch {
	case result.IsError && c.json:
		return exitError{exitToolError, errors.New("the tool reported an error")}
	case result.IsError:
		text := strings.TrimSpace(renderResult(result))
		if text == "" {
			text = "the tool reported an error and did not say which"
		}
		return exitError{exitToolError, errors.New(text)}
	case c.json:
		return nil
	}
	return c.print(renderResult(result))
}

func (c *session) print(text string) error {
	_, err := fmt.Fprint(c.Out, text)
	return failed(err)
}
