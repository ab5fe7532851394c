package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// commandLine runs a command line in process.
func commandLine(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	status = run(t.Context(), args, streams{In: strings.NewReader(""), Out: &out, Err: &err, Columns: func(any) int { return 0 }})
	return status, out.String(), err.String()
}

func TestSettingsAreDocumented(t *testing.T) {
	table, err := describeSettings()
	require.NoError(t, err)
	document, err := os.ReadFile("../../docs/configuration.md")
	require.NoError(t, err)
	assert.Contains(t, string(document), table, "docs/configuration.md has what --help says, between its settings markers")

	status, help, _ := commandLine(t, "--help")
	assert.Zero(t, status)
	assert.Contains(t, help, "TASKBRIDGE_STATE_KEY")
	assert.Contains(t, help, "TEMPORAL_ADDRESS")
}

func TestWrongSettingsAreNamed(t *testing.T) {
	for name, test := range map[string]struct{ value, message string }{
		"TASKBRIDGE_STATE_KEY": {"short", `TASKBRIDGE_STATE_KEY: not 32 bytes in base64`},
		"TASKBRIDGE_MAX_BODY":  {"-1", "TASKBRIDGE_MAX_BODY=-1: must be a number of bytes above 0"},
		"TASKBRIDGE_INSECURE":  {"perhaps", `TASKBRIDGE_INSECURE="perhaps": must be true or false`},
		"TASKBRIDGE_LOG_LEVEL": {"loud", `TASKBRIDGE_LOG_LEVEL="loud": must be debug, info, warn or error`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, test.value)
			status, _, stderr := commandLine(t, "tools")
			assert.Equal(t, exitUsage, status)
			assert.Contains(t, stderr, test.message)
		})
	}
}

func TestKeysAreNeverTold(t *testing.T) {
	const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0"
	for name, values := range map[string]map[string]string{
		"TASKBRIDGE_STATE_KEY": {secret: "TASKBRIDGE_STATE_KEY: not 32 bytes in base64"},
		"TASKBRIDGE_PAYLOAD_KEYS": {
			secret:                                  "TASKBRIDGE_PAYLOAD_KEYS: key 1 has no ID: write ID:BASE64",
			"a:" + secret:                           `TASKBRIDGE_PAYLOAD_KEYS: key "a" has 27 bytes: an AES key has 16, 24 or 32`,
			"a:" + secret + "!":                     `TASKBRIDGE_PAYLOAD_KEYS: key 1 is not in base64`,
			"a:" + secret[:32] + ",a:" + secret[4:]: `TASKBRIDGE_PAYLOAD_KEYS: two keys have the ID "a"`,
		},
	} {
		for value, message := range values {
			t.Setenv(name, value)
			status, stdout, stderr := commandLine(t, "tools")
			assert.Equal(t, exitUsage, status)
			assert.Contains(t, stderr, message)
			assert.NotContains(t, stdout+stderr, secret[4:12])
		}
		t.Setenv(name, "")
	}
	t.Setenv("TASKBRIDGE_PAYLOAD_KEYS", "a:"+secret[:32])
	for _, args := range [][]string{{"--help"}, {"serve", "--help"}, {"serve", "--catalog", "no-such-file.yaml"}} {
		_, stdout, stderr := commandLine(t, args...)
		assert.NotContains(t, stdout+stderr, secret[4:12])
	}
}

func TestListenAddresses(t *testing.T) {
	for listen, message := range map[string]string{
		"127.0.0.1:0": "", "[::1]:0": "", "localhost:80": "",
		"0.0.0.0:80": "can be reached by others", ":80": "can be reached by others", "example.com:80": "can be reached by others",
		"8080": "write host:port",
	} {
		err := settings{Listen: listen}.checkListen()
		if message == "" {
			assert.NoError(t, err, listen)
		} else {
			assert.ErrorContains(t, err, message, listen)
		}
	}
	assert.NoError(t, settings{Listen: "0.0.0.0:80", Insecure: true}.checkListen())
}

func TestCommandLineMistakes(t *testing.T) {
	for _, test := range []struct {
		args    string
		status  int
		message string
	}{
		{"serve", exitUsage, "serve needs a tool catalog: name it with --catalog or TASKBRIDGE_CATALOG"},
		{"serve --listen 0.0.0.0:0 --catalog ../../examples/demo/catalog.yaml", exitUsage, "say --insecure"},
		{"serve --catalog no-such-file.yaml", 1, "no-such-file.yaml"},
		{"serve --listne x", exitUsage, "unknown flag: --listne"},
		{"frobnicate", exitUsage, `taskbridge has no command "frobnicate"; see taskbridge --help`},
		{"serv", exitUsage, `serve?`},
		{"catalog chek", exitUsage, `taskbridge catalog has no command "chek"; did you mean check?`},
		{"dev extra", exitUsage, "usage: taskbridge dev"},
		{"call", exitUsage, "usage: taskbridge call"},
		{"catalog check", exitUsage, "usage: taskbridge catalog check FILE|DIR..."},
		{"tools --url http://127.0.0.1:1/mcp", exitFailed, "no MCP server answers"},
	} {
		t.Run(test.args, func(t *testing.T) {
			status, _, stderr := commandLine(t, strings.Fields(test.args)...)
			assert.Equal(t, test.status, status, stderr)
			assert.Contains(t, stderr, test.message)
		})
	}
}

func TestCatalogCommands(t *testing.T) {
	status, stdout, stderr := commandLine(t, "catalog", "check", "../../examples/demo/catalog.yaml")
	assert.Zero(t, status, stderr)
	assert.Equal(t, "ok: 2 tool(s)\n", stdout)

	wrong := t.TempDir() + "/wrong.yaml"
	require.NoError(t, os.WriteFile(wrong, []byte("version: 1\ntools:\n  ci:\n    description: d\n    workflow: Pipeline\n    taskQueue: q\n"+
		"    with:\n      pipeline:\n        steps:\n          - name: test\n            run: [x]\n            needs: [vet]\n"), 0o600))
	status, _, stderr = commandLine(t, "catalog", "check", wrong)
	assert.Equal(t, 1, status)
	assert.Contains(t, stderr, wrong+`:12:20: tools.ci.with.pipeline.steps[0].needs: needs unknown step "vet"`)

	status, stdout, _ = commandLine(t, "catalog", "schema")
	assert.Zero(t, status)
	assert.Contains(t, stdout, "https://json-schema.org/draft/2020-12/schema")
}
