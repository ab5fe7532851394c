package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"taskbridge/internal/mcpclient"
)

// jsonValue is a JSON value passed on as it is.
type jsonValue = json.RawMessage

const callHelp = `Call a tool and follow the task it makes to its end.

The arguments are a JSON object, @FILE with one, or - for stdin; the default is {}. Progress is shown on stderr; the
result's text is printed on stdout, a tool's error on stderr. Questions of the tool are asked in the terminal. Without a
terminal, answer them beforehand:

` + answerForms + `

Ctrl-C cancels the task and waits until it has ended.

` + exitStatuses

const callExamples = `  taskbridge call greet '{"name": "Ada"}'
  taskbridge call deploy @deploy.json --answer approve='{"go": true}'
  taskbridge call nightly_load --detach
  taskbridge call nightly_load --json | jq .status`

func newCallCommand(url string, s streams) *cobra.Command {
	var (
		o      followOptions
		key    string
		detach bool
	)
	cmd := &cobra.Command{
		Use:     "call TOOL [JSON|@FILE|-]",
		Short:   "Call a tool and follow its task",
		Long:    callHelp,
		Example: callExamples,
		Args:    between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.session(cmd, s)
			if err != nil {
				return err
			}
			arguments, err := readArguments(args[1:], s.In)
			if err != nil {
				return err
			}
			ctx, stop := o.bound(cmd.Context())
			defer stop()
			return c.call(ctx, toolCall{args[0], key, arguments}, detach)
		},
	}
	o.addFlags(cmd, url)
	cmd.Flags().BoolVar(&detach, "detach", false, "print the task's ID and leave it running")
	cmd.Flags().StringVar(&key, "idempotency-key", "", "makes a repeated call of a tool with \"dedupe: key\" the same call")
	return cmd
}

type toolCall struct {
	tool      string
	key       string // idempotency key, "" for none
	arguments jsonValue
}

// call runs a tool. With detach it leaves the task, if there is one, as soon as it is started.
func (c *session) call(ctx context.Context, call toolCall, detach bool) error {
	outcome, err := c.start(ctx, call)
	switch {
	case ctx.Err() != nil && err != nil:
		return givenUp(ctx, call.tool)
	case err != nil:
		return failed(err)
	case outcome.Result != nil:
		return c.finishCall(outcome.Result)
	case detach && c.json:
		return c.print(string(outcome.Task.Raw) + "\n")
	case detach:
		return c.print(outcome.Task.ID + "\n")
	}
	c.progress.say("task %s", outcome.Task.ID)
	task, err := c.follow(ctx, outcome.Task)
	if err != nil && timedOut(ctx) {
		err = c.goesOn(ctx, task.ID)
	} else if err != nil && ctx.Err() != nil {
		task, err = c.cancel(ctx, task)
	}
	return c.finish(task, err)
}

// finishCall prints the result of a tool that made no task.
func (c *session) finishCall(result *mcpclient.Result) error {
	if c.json {
		if err := c.print(string(result.Raw) + "\n"); err != nil {
			return err
		}
	}
	return c.finishResult(result)
}

// givenUp is the error of a call that ended before it led to anything.
func givenUp(ctx context.Context, tool string) error {
	if timedOut(ctx) {
		return exitError{exitTimeout, fmt.Errorf("%s has made no task and no result yet; the call was given up", tool)}
	}
	return exitError{exitInterrupted, fmt.Errorf("the call of %s was given up", tool)}
}

// start calls a tool as often as it has questions before it starts anything (MCP 2026-07-28, Multi Round-Trip Requests).
func (c *session) start(ctx context.Context, call toolCall) (mcpclient.Outcome, error) {
	var round *mcpclient.Round
	for {
		outcome, err := c.attempt(ctx, call, round)
		if err != nil || outcome.Questions == nil {
			clear(c.answers.used) // a task may use the same keys again
			return outcome, err
		}
		responses, err := c.respond(ctx, call, outcome.Questions)
		if err != nil {
			return outcome, err
		}
		round = &mcpclient.Round{InputResponses: responses, RequestState: outcome.Questions.RequestState}
		if len(responses) == 0 { // the server only wants to be asked again
			if err := c.progress.wait(ctx, minPoll); err != nil {
				return outcome, err
			}
		}
	}
}

func (c *session) attempt(ctx context.Context, call toolCall, round *mcpclient.Round) (outcome mcpclient.Outcome, err error) {
	defer c.progress.clear()
	c.progress.during(func() { outcome, err = c.client.CallOnce(ctx, call.tool, call.key, call.arguments, round) })
	return outcome, err
}

// respond finds the answers to a call's questions. Those that nobody can answer end it with exitInput.
func (c *session) respond(ctx context.Context, call toolCall, questions *mcpclient.Questions) (map[string]jsonValue, error) {
	responses, open := map[string]jsonValue{}, mcpclient.Requests{}
	for _, key := range sortedKeys(questions.InputRequests) {
		request := questions.InputRequests[key]
		response, err := c.answers.to(ctx, key, request)
		if errors.Is(err, errUnanswered) {
			open[key] = request
			continue
		}
		if err != nil {
			return nil, err
		}
		responses[key] = response
	}
	if len(open) == 0 {
		return responses, nil
	}
	if c.json {
		if err := c.print(string(questions.Raw) + "\n"); err != nil {
			return nil, err
		}
	}
	words := []string{"call", shellQuote(call.tool), shellQuote(string(call.arguments))}
	for _, key := range sortedKeys(open) {
		words = append(words, "--answer", exampleAnswer(key, open[key]))
	}
	c.progress.say("%s", openQuestions(open, c.command(words...)))
	return nil, exitError{exitInput, fmt.Errorf("%s needs input before it starts; nothing was started", call.tool)}
}
