package main

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestRenderLine(t *testing.T) {
	for name, test := range map[string]struct {
		text    string
		elapsed time.Duration
		columns int
		want    string
	}{
		"fits":               {"working: building", 3 * time.Second, 80, "| working: building 3s"},
		"is cut":             {"working: building", 3 * time.Second, 18, "| working: bu~ 3s"},
		"wide characters":    {"working: 構築中です", 3 * time.Second, 20, "| working: 構築~ 3s"},
		"minutes":            {"working", 65 * time.Second, 80, "| working 1m05s"},
		"hours":              {"working", 2*time.Hour + 3*time.Minute, 80, "| working 2h03m"},
		"clocks that differ": {"working", -time.Second, 80, "| working 0s"},
		"hardly any room":    {"working", time.Second, 4, "|  1s"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, test.want, renderLine(0, test.text, test.elapsed, test.columns))
		})
	}
}

func TestProgressOnATerminalIsOneLine(t *testing.T) {
	p, out := newTestProgress(80)
	p.show("working: a\x1b[2J\nb", time.Now())
	p.show("working: c", time.Now())
	p.say("task %d", 1)
	assert.Equal(t, "\r| working: a[2J b 0s\x1b[K"+"\r/ working: c 0s\x1b[K"+"\r\x1b[K"+"task 1\n", out.String())
}

func TestProgressElsewhereIsALineForEachChange(t *testing.T) {
	p, out := newTestProgress(0)
	p.show("working", time.Now())
	p.show("working", time.Now())
	p.show("working: a", time.Now())
	p.say("task 1")
	assert.Equal(t, "working\nworking: a\ntask 1\n", out.String())
}

func TestWaitEndsWithItsContext(t *testing.T) {
	p, _ := newTestProgress(0)
	require.NoError(t, p.wait(t.Context(), time.Millisecond))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.wait(ctx, time.Hour), context.Canceled)
}

func TestLineIsRedrawnDuringWork(t *testing.T) {
	p, out := newTestProgress(80)
	p.show("working", time.Now())
	drawn := out.Len()
	require.NoError(t, p.wait(t.Context(), 250*time.Millisecond)) // at least one redraw
	assert.Greater(t, out.Len(), drawn)
	done := false
	p.during(func() { done = true })
	assert.True(t, done)
}

func newTestProgress(columns int) (*progress, *bytes.Buffer) {
	var out bytes.Buffer
	return newProgress(streams{Err: &out, Columns: func(any) int { return columns }}), &out
}
