package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
)

// prompter asks a person in a terminal.
type prompter struct {
	lines *lineReader
	out   io.Writer
	// from names the server that wants to know.
	from string
}

// errLeft is what a person says who leaves a form without answering it.
type errLeft struct{ action string }

func (e errLeft) Error() string { return "the form was left: " + e.action }

// ask shows a question and returns the answer, whatever it is. The error is that of ctx, or of reading the terminal.
func (p *prompter) ask(ctx context.Context, e *elicitation) (elicitResult, error) {
	p.printf("\n%s asks:\n%s\n", p.from, indentLines(printable(e.Message, true)))
	result, err := p.answer(ctx, e)
	var left errLeft
	switch {
	case errors.As(err, &left):
		return elicitResult{Action: left.action}, nil
	case err != nil: // Ctrl-C or Ctrl-D stands in the line of the prompt
		p.printf("\n")
	}
	if errors.Is(err, io.EOF) {
		return elicitResult{Action: cancel}, nil
	}
	return result, err
}

func (p *prompter) answer(ctx context.Context, e *elicitation) (elicitResult, error) {
	switch {
	case e.Mode == "url":
		return p.consent(ctx, e.URL)
	case len(e.fields) == 0:
		return p.decide(ctx, "Yes or no?", elicitResult{accept, map[string]json.RawMessage{}})
	}
	p.printf("  (%s:decline refuses, :cancel or Ctrl-D dismisses)\n", starred(e.fields))
	var content map[string]json.RawMessage
	for {
		var err error
		if content, err = p.fill(ctx, e.fields, content); err != nil {
			return elicitResult{}, err
		}
		if len(e.fields) == 1 { // has just been seen
			return elicitResult{accept, content}, nil
		}
		if send, err := p.yesNo(ctx, "Send these answers?", "y"); err != nil || send {
			return elicitResult{accept, content}, err
		}
	}
}

func starred(fields []field) string {
	for _, f := range fields {
		if f.Required {
			return "* is required; "
		}
	}
	return ""
}

// consent shows where a URL leads before anybody goes there. The person opens it.
func (p *prompter) consent(ctx context.Context, address string) (elicitResult, error) {
	host := "an unknown host"
	if parsed, err := url.Parse(address); err == nil && parsed.Host != "" {
		host = parsed.Host
	}
	p.printf("  It wants you to open this page of %s:\n\n    %s\n\n", printable(host, false), printable(address, false))
	return p.decide(ctx, "Do you agree to open it?", elicitResult{Action: accept})
}

// decide asks for yes, which is result, or no, which is a refusal.
func (p *prompter) decide(ctx context.Context, question string, result elicitResult) (elicitResult, error) {
	yes, err := p.yesNo(ctx, question, "")
	if err == nil && !yes {
		return elicitResult{Action: decline}, nil
	}
	return result, err
}

func (p *prompter) yesNo(ctx context.Context, question, otherwise string) (bool, error) {
	var yes json.RawMessage
	err := p.read(ctx, question+" (y/n)"+bracketed(otherwise)+": ", func(text string) (err error) {
		if text == "" {
			text = otherwise
		}
		yes, err = parseYesNo(text)
		return err
	})
	return string(yes) == "true", err
}

// fill asks for each field. Enter takes what before has, else the default.
func (p *prompter) fill(ctx context.Context, fields []field, before map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	content := map[string]json.RawMessage{}
	for _, f := range fields {
		otherwise := f.Default
		if value, ok := before[f.Name]; ok {
			otherwise = value
		}
		p.list(f)
		err := p.read(ctx, f.prompt(otherwise), func(text string) error {
			value, err := otherwise, error(nil)
			if text != "" {
				value, err = f.parse(text)
			}
			if err == nil && value == nil && f.Required {
				return errors.New("this is required")
			}
			if err == nil && value != nil {
				content[f.Name] = value
			}
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return content, nil
}

// list shows a field's choices.
func (p *prompter) list(f field) {
	for i, c := range f.choices() {
		p.printf("  %d) %s\n", i+1, printable(c.label, false))
	}
}

// prompt is the text before the cursor.
func (f field) prompt(otherwise json.RawMessage) string {
	label := f.Title
	if label == "" {
		label = f.Name
	}
	if f.Required {
		label += " *"
	}
	if f.Description != "" {
		label += " - " + f.Description
	}
	if hint := f.hint(); hint != "" {
		label += " (" + hint + ")"
	}
	return printable(label+bracketed(f.show(otherwise)), false) + ": "
}

func bracketed(otherwise string) string {
	if otherwise == "" {
		return ""
	}
	return " [" + otherwise + "]"
}

// read prompts until take accepts what was typed.
func (p *prompter) read(ctx context.Context, prompt string, take func(text string) error) error {
	for {
		p.printf("  %s", prompt)
		text, err := p.lines.read(ctx)
		if err != nil {
			return err
		}
		switch text {
		case ":decline":
			return errLeft{decline}
		case ":cancel":
			return errLeft{cancel}
		}
		if err := take(text); err != nil {
			p.printf("  ! %v\n", err)
			continue
		}
		return nil
	}
}

func (p *prompter) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.out, format, args...) }

func indentLines(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// lineReader reads lines such that waiting for one can be given up. A line that comes later is the next one's.
type lineReader struct {
	in      *bufio.Reader
	pending chan typed
}

type typed struct {
	text string
	err  error
}

func newLineReader(in io.Reader) *lineReader { return &lineReader{in: bufio.NewReader(in)} }

// read is the next line, trimmed. The error is io.EOF or that of ctx.
func (l *lineReader) read(ctx context.Context) (string, error) {
	if l.pending == nil {
		pending := make(chan typed, 1)
		l.pending = pending
		go func() {
			text, err := l.in.ReadString('\n')
			if text != "" {
				err = nil
			}
			pending <- typed{strings.TrimSpace(text), err}
		}()
	}
	select {
	case line := <-l.pending:
		l.pending = nil
		return line.text, line.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
