package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// progress shows on stderr how a task is doing: on a terminal as one line that is redrawn in place, elsewhere as a line
// for each change. It is for one goroutine.
type progress struct {
	out     io.Writer
	columns func() int // of the terminal, 0 if it is none
	text    string
	since   time.Time
	frame   int
	drawn   bool
}

func newProgress(s streams) *progress {
	return &progress{out: s.Err, columns: func() int { return s.columns(s.Err) }}
}

// show replaces what is shown. since is when the work began, for the time it has taken so far.
func (p *progress) show(text string, since time.Time) {
	text = printable(text, false)
	changed := text != p.text
	p.text, p.since = text, since
	if p.columns() > 0 {
		p.draw()
	} else if changed {
		p.write(text + "\n")
	}
}

// say writes a line that stays.
func (p *progress) say(format string, args ...any) {
	p.clear()
	p.write(fmt.Sprintf(format, args...) + "\n")
}

// clear takes the redrawn line away.
func (p *progress) clear() {
	if p.drawn {
		p.write("\r\x1b[K")
		p.drawn = false
	}
}

// wait waits for a duration, or returns the error of ctx if it ends first.
func (p *progress) wait(ctx context.Context, duration time.Duration) error {
	return p.waitForNews(ctx, duration, nil)
}

// waitForNews is wait that news end too.
func (p *progress) waitForNews(ctx context.Context, duration time.Duration, news <-chan struct{}) error {
	timer, cancel := context.WithTimeout(ctx, duration)
	defer cancel()
	p.until(timer.Done(), news)
	return ctx.Err()
}

// during does work on another goroutine and returns when it is done.
func (p *progress) during(work func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		work()
	}()
	p.until(done, nil)
}

// until keeps the line alive until done is closed or there are news.
func (p *progress) until(done, news <-chan struct{}) {
	const redraw = 100 * time.Millisecond // quick enough to look alive
	ticker := time.NewTicker(redraw)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-news:
			return
		case <-ticker.C:
			if p.columns() > 0 && p.text != "" {
				p.draw()
			}
		}
	}
}

func (p *progress) draw() {
	p.write("\r" + renderLine(p.frame, p.text, time.Since(p.since), p.columns()) + "\x1b[K")
	p.frame++
	p.drawn = true
}

// write ignores errors: a command does its work even if nobody can see how it gets on.
func (p *progress) write(text string) { _, _ = io.WriteString(p.out, text) }

// renderLine is the line of a terminal with so many columns: a spinner, what fits of the text, and the time.
func renderLine(frame int, text string, elapsed time.Duration, columns int) string {
	spinner := []rune(`|/-\`)
	head, tail := string(spinner[frame%len(spinner)])+" ", " "+renderElapsed(elapsed)
	const spare = 1 // a full last column would wrap
	return head + clip(text, columns-len(head)-len(tail)-spare) + tail
}

// renderElapsed is a duration to the second.
func renderElapsed(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%dh%02dm", d/time.Hour, d%time.Hour/time.Minute)
}

// clip shortens text to at most so many columns. It takes every character that may be wide for wide.
func clip(text string, columns int) string {
	const firstWide = 0x1100 // Hangul; nothing before it takes two columns
	width := func(r rune) int {
		if r < firstWide {
			return 1
		}
		return 2
	}
	total, fits := 0, 0
	for i, r := range text {
		if total+1 <= columns { // leaves one column for the mark
			fits = i
		}
		total += width(r)
	}
	if total <= columns {
		return text
	}
	if columns < 1 {
		return ""
	}
	return text[:fits] + "~"
}

// printable is text of a server without what would control the terminal. Line breaks are kept or become spaces.
func printable(text string, lines bool) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' && lines, unicode.IsPrint(r):
			return r
		case unicode.IsSpace(r):
			return ' '
		}
		return -1
	}, text)
}
