package activities

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"
	"unicode"

	"go.temporal.io/sdk/activity"

	"taskbridge/internal/procgroup"
	"taskbridge/signals"
)

const (
	heartbeatPause    = 250 * time.Millisecond // between two heartbeats at least
	heartbeatInterval = time.Second            // at most, when there is no output
	statusLineRunes   = 120
)

// progress reports how a command is getting on.
type progress struct {
	label string
	begin time.Time
	tail  *procgroup.Tail

	beat      time.Time // of the last heartbeat
	beatTotal int64     // bytes of output reported with it
}

// heartbeat sends one if there is new output or the last is a while ago.
func (p *progress) heartbeat(ctx context.Context) {
	total := p.tail.Total()
	if total == p.beatTotal && time.Since(p.beat) < heartbeatInterval {
		return
	}
	p.beat, p.beatTotal = time.Now(), total
	activity.RecordHeartbeat(ctx, signals.Heartbeat{Version: signals.Version, StatusMessage: p.message()})
}

// message is such as "test (2/4) running 12s: ok example.com/pkg".
func (p *progress) message() string {
	message := fmt.Sprintf("%s running %s", shorten(clean(p.label)), time.Since(p.begin).Truncate(time.Second))
	text, _ := p.tail.Text()
	if line := lastLine(text); line != "" {
		message += ": " + line
	}
	return message
}

// escape matches terminal control sequences (ECMA-48): CSI, then OSC and the other strings up to their end, then the
// short ones.
var escape = regexp.MustCompile(`\x1b\[[0-?]*[ -/]*[@-~]|\x1b[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|\x1b[ -/]*[0-~]`)

// lastLine is the last line of text with something to see, cleaned and shortened for a status message. A carriage
// return ends a line too: progress bars are redrawn with it.
func lastLine(text string) string {
	for text != "" {
		start := strings.LastIndexAny(text, "\r\n") + 1
		if line := clean(text[start:]); line != "" {
			return shorten(line)
		}
		text = text[:max(0, start-1)]
	}
	return ""
}

// clean removes what a terminal would not print, and makes every run of white space one space.
func clean(line string) string {
	line = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsGraphic(r):
			return r
		default:
			return -1
		}
	}, escape.ReplaceAllString(line, ""))
	return strings.Join(strings.Fields(line), " ")
}

func shorten(line string) string {
	runes := []rune(line)
	if len(runes) <= statusLineRunes {
		return line
	}
	return string(runes[:statusLineRunes-1]) + "…"
}
