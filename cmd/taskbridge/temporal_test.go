package main

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/stretchr/testify/assert"
	"go.temporal.io/sdk/temporal"
)

func TestCancelledActivitiesAreNoErrorsInTheLog(t *testing.T) {
	var out bytes.Buffer
	log := temporalLogger(&out, slog.LevelInfo).With("worker", "w").WithGroup("g")
	log.Error("Activity error.", "Error", context.Canceled)
	log.Warn("RecordActivityHeartbeat with error", "Error", temporal.NewCanceledError())
	log.Info("Started Worker")
	assert.Empty(t, out.String())
	log.Error("Activity error.", "Error", errors.New("broken"))
	assert.Contains(t, out.String(), "broken")
}
