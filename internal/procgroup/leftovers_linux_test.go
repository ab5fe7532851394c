package procgroup

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestStopGivesGrandchildrenTheGraceToo(t *testing.T) {
	cmd, pidFile := shell(t, `sh -c 'trap "sleep 0.3; echo tidied >>$PIDS; exit" TERM
		echo $$ >"$PIDS"; while :; do sleep 0.05; done' & sleep 300`)
	g, err := Start(cmd)
	require.NoError(t, err)
	readPIDs(t, pidFile, 1)

	g.Stop(time.Minute)
	text, err := os.ReadFile(pidFile)
	require.NoError(t, err)
	assert.Contains(t, string(text), "tidied", "the direct child ends at once, the grandchild only after tidying up")
}
