package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"taskbridge/internal/mcpclient"
)

func newTaskCommand(url string, s streams) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "task",
		Short: "See, follow, answer or cancel a task",
		Args:  knownCommand,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTaskGetCommand(url, s), newTaskWatchCommand(url, s), newTaskAnswerCommand(url, s), newTaskCancelCommand(url, s))
	return cmd
}

func newTaskGetCommand(url string, s streams) *cobra.Command {
	var (
		server target
		asJSON bool
	)
	cmd := &cobra.Command{
		Use:   "get ID",
		Short: "Show a task as it is now",
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := server.client(cmd)
			if err != nil {
				return err
			}
			task, err := client.GetTask(cmd.Context(), args[0])
			if err != nil {
				return failed(err)
			}
			text := string(task.Raw) + "\n"
			if !asJSON {
				text = renderTask(task, time.Now())
			}
			_, err = fmt.Fprint(s.Out, text)
			return failed(err)
		},
	}
	server.addFlags(cmd, url)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the task as the server sent it")
	return cmd
}

// renderTask is all about a task in lines for a person.
func renderTask(task *mcpclient.Task, now time.Time) string {
	var text strings.Builder
	columns := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		_, _ = fmt.Fprintf(columns, "%s\t%s\n", name, printable(fmt.Sprintf(format, args...), false))
	}
	row("task", "%s", task.ID)
	row("status", "%s", describe(task))
	row("created", "%s", renderTime(task.CreatedAt, now))
	row("updated", "%s", renderTime(task.LastUpdatedAt, now))
	if task.TTLMs != nil {
		row("kept until", "%s", task.CreatedAt.Add(time.Duration(*task.TTLMs)*time.Millisecond).Local().Format(time.DateTime))
	}
	for _, key := range sortedKeys(task.InputRequests) {
		row("asks "+printable(key, false), "%s", summary(task.InputRequests[key]))
	}
	if task.Error != nil {
		row("error", "%v", task.Error)
	}
	_ = columns.Flush() // a strings.Builder takes everything
	if task.Result != nil {
		title := "result"
		if task.Result.IsError {
			title = "result (the tool reported an error)"
		}
		text.WriteString(title + "\n" + indent(renderResult(task.Result)))
	}
	return text.String()
}

func renderTime(t, now time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.Local().Format(time.DateTime), renderElapsed(now.Sub(t)))
}

// summary is an input request in a few words.
func summary(request mcpclient.Request) string {
	if question, err := parseElicitation(request.Params); err == nil && request.Method == methodElicit {
		return question.Message
	}
	return request.Method
}

const watchHelp = `Follow a task to its end, as call does, and print its result.

Its questions are asked in the terminal, or answered beforehand with --answer and --yes:

` + answerForms + `

Ctrl-C only stops following; the task goes on.

` + exitStatuses

func newTaskWatchCommand(url string, s streams) *cobra.Command {
	var o followOptions
	cmd := &cobra.Command{
		Use:   "watch ID",
		Short: "Follow a task to its end",
		Long:  watchHelp,
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.session(cmd, s)
			if err != nil {
				return err
			}
			ctx, stop := o.bound(cmd.Context())
			defer stop()
			return c.watch(ctx, args[0])
		},
	}
	o.addFlags(cmd, url)
	return cmd
}

func (c *session) watch(ctx context.Context, id string) error {
	task, err := c.client.GetTask(ctx, id)
	if err != nil && ctx.Err() != nil {
		return c.goesOn(ctx, id)
	}
	if err != nil {
		return failed(err)
	}
	task, err = c.follow(ctx, task)
	if err != nil && ctx.Err() != nil {
		err = c.goesOn(ctx, id)
	}
	return c.finish(task, err)
}

const answerHelp = `Answer questions of a task: those named, or without any all open ones in the terminal.

` + answerForms

func newTaskAnswerCommand(url string, s streams) *cobra.Command {
	var o followOptions
	cmd := &cobra.Command{
		Use:   "answer ID [KEY=JSON ...]",
		Short: "Answer questions of a task",
		Long:  answerHelp,
		Example: `  taskbridge task answer ID
  taskbridge task answer ID approve-1='{"go": true}'
  taskbridge task answer ID approve=decline`,
		Args: between(1, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.answers = args[1:]
			c, err := o.session(cmd, s)
			if err != nil {
				return err
			}
			return c.answer(cmd.Context(), args[0])
		},
	}
	o.target.addFlags(cmd, url)
	return cmd
}

// answer answers the open questions of a task for which answers were given, or all if none were.
func (c *session) answer(ctx context.Context, id string) error {
	task, err := c.client.GetTask(ctx, id)
	if err != nil {
		return failed(err)
	}
	if len(task.InputRequests) == 0 {
		return exitError{exitFailed, fmt.Errorf("task %s asks nothing: it is %s", id, printable(describe(task), false))}
	}
	if len(c.answers.given) > 0 {
		c.answers.person = nil
		if err := c.answers.given.choose(task); err != nil {
			return err
		}
	}
	if _, err := c.answerAll(ctx, task); err != nil {
		if ctx.Err() != nil {
			return exitError{exitInterrupted, errors.New("stopped; what was answered before is sent")}
		}
		return failed(err)
	}
	return c.settle(ctx, task)
}

// choose leaves a task only with the questions to which answers were given. A given answer without a question is an
// error.
func (g givenAnswers) choose(task *mcpclient.Task) error {
	open := sortedKeys(task.InputRequests)
	for key := range g {
		if !slices.ContainsFunc(open, func(k string) bool { return k == key || stem(k) == key }) {
			return usageErrorf("task %s does not ask %s; it asks %s", task.ID, key, strings.Join(open, ", "))
		}
	}
	maps.DeleteFunc(task.InputRequests, func(key string, _ mcpclient.Request) bool {
		_, given := g.to(key)
		return !given
	})
	return nil
}

// settle waits until a task no longer shows the questions that were answered, so that whoever looks at it next does not
// answer them again.
func (c *session) settle(ctx context.Context, task *mcpclient.Task) error {
	const enough = 5 * time.Second
	bounded, cancel := context.WithTimeout(ctx, enough)
	defer cancel()
	keys := strings.Join(slices.Sorted(maps.Keys(c.answered)), ", ")
	for {
		now, err := c.client.GetTask(bounded, task.ID)
		switch {
		case err != nil && bounded.Err() == nil:
			return failed(err)
		case err == nil && !slices.ContainsFunc(sortedKeys(now.InputRequests), func(key string) bool { return c.answered[key] }):
			c.progress.say("answered %s; the task is %s", keys, printable(describe(now), false))
			return nil
		}
		if c.progress.wait(bounded, minPoll) != nil {
			c.progress.say("answered %s; the task has not taken it up yet", keys)
			return nil
		}
	}
}

func newTaskCancelCommand(url string, s streams) *cobra.Command {
	var (
		o    followOptions
		wait bool
	)
	cmd := &cobra.Command{
		Use:   "cancel ID",
		Short: "Ask a task to stop",
		Long:  "Ask a task to stop. It may clean up before it ends, and may even complete.",
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := o.session(cmd, s)
			if err != nil {
				return err
			}
			return c.stop(cmd.Context(), args[0], wait)
		},
	}
	o.target.addFlags(cmd, url)
	cmd.Flags().BoolVar(&wait, "wait", false, "wait until the task has ended")
	return cmd
}

// stop cancels a task.
func (c *session) stop(ctx context.Context, id string, wait bool) error {
	if err := c.requestCancel(ctx, id); err != nil {
		return failed(err)
	}
	if !wait {
		c.progress.say("task %s was asked to stop", id)
		return nil
	}
	task, err := c.client.GetTask(ctx, id)
	if err != nil {
		return failed(err)
	}
	task.InputRequests = nil // nobody has to answer them any more
	for !task.Status.Terminal() {
		c.progress.show(describeCancelling(task), task.CreatedAt)
		if c.progress.wait(ctx, minPoll) != nil {
			return c.goesOn(ctx, id)
		}
		if task, err = c.get(ctx, task); err != nil {
			return failed(err)
		}
	}
	c.progress.say("task %s is %s", id, printable(describe(task), false))
	return nil
}
