package cluster

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func TestPolled(t *testing.T) {
	now := time.Now()
	poller := func(worker string, ago time.Duration) *taskqueuepb.PollerInfo {
		return &taskqueuepb.PollerInfo{Identity: worker, LastAccessTime: timestamppb.New(now.Add(-ago))}
	}
	for name, test := range map[string]struct {
		pollers []*taskqueuepb.PollerInfo
		wanted  state
	}{
		"never any":    {nil, state{Error, "no worker polls it: start its worker"}},
		"one with two": {[]*taskqueuepb.PollerInfo{poller("a", 0), poller("a", time.Minute)}, state{OK, "1 worker polls it"}},
		"one left":     {[]*taskqueuepb.PollerInfo{poller("a", 3*time.Minute), poller("b", 0)}, state{OK, "1 worker polls it"}},
		"two":          {[]*taskqueuepb.PollerInfo{poller("a", time.Second), poller("b", 0)}, state{OK, "2 workers poll it"}},
		"all have ended": {[]*taskqueuepb.PollerInfo{poller("a", 4*time.Minute), poller("b", 2*time.Minute)},
			state{Error, "no worker polls it, the last did 2m0s ago: start its worker"}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, test.wanted, polled(test.pollers, now)) })
	}
}
