package main

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kelseyhightower/envconfig"

	"taskbridge/mcpbridge"
	"taskbridge/mcpbridge/codec"
)

// envPrefix begins the names of taskbridge's own settings. The Temporal connection has the standard TEMPORAL_* ones.
const envPrefix = "TASKBRIDGE"

// settings are taskbridge's own, from TASKBRIDGE_* environment variables; flags override them.
type settings struct {
	Listen         string        `default:"127.0.0.1:8080" desc:"address on which the MCP front end listens; port 0 picks a free one"`
	Insecure       bool          `default:"false" desc:"listen on other than loopback addresses although callers are not authenticated"`
	Catalog        []string      `desc:"tool catalogs: YAML files or directories, comma-separated"`
	TaskQueue      string        `split_words:"true" default:"taskbridge" desc:"task queue of the bundled worker"`
	StateKey       stateKey      `split_words:"true" desc:"32 random bytes in base64, the same for all front ends of a service, so that one can finish a call which another began; by default random for each process"`
	PayloadKeys    payloadKeys   `split_words:"true" desc:"AES keys for what tasks are about, as ID:BASE64, comma-separated; the first encrypts, all decrypt; by default nothing is encrypted"`
	MaxBody        int64         `split_words:"true" default:"4194304" desc:"largest request body in bytes"`
	AllowedOrigins []string      `split_words:"true" desc:"browser origins beside the server's own that may call, such as https://app.example.com, comma-separated"`
	MaxSessions    int           `split_words:"true" default:"10000" desc:"how many sessions of clients that speak MCP 2025-11-25 or earlier there may be at once"`
	SessionTimeout time.Duration `split_words:"true" default:"30m" desc:"ends a session whose client has had no connection for that long"`
	LogLevel       slog.Level    `split_words:"true" default:"info" desc:"debug, info, warn or error"`
	URL            string        `default:"http://127.0.0.1:8080/mcp" desc:"MCP endpoint for the client commands"`
}

// loadSettings reads the environment and checks each value.
func loadSettings() (settings, error) {
	var s settings
	if err := envconfig.Process(envPrefix, &s); err != nil {
		return s, settingError(err)
	}
	if s.MaxBody <= 0 {
		return s, fmt.Errorf("TASKBRIDGE_MAX_BODY=%d: must be a number of bytes above 0", s.MaxBody)
	}
	if s.MaxSessions <= 0 {
		return s, fmt.Errorf("TASKBRIDGE_MAX_SESSIONS=%d: must be a number above 0", s.MaxSessions)
	}
	if s.SessionTimeout < time.Second {
		return s, fmt.Errorf("TASKBRIDGE_SESSION_TIMEOUT=%s: must be a duration of at least 1s, such as 30m", s.SessionTimeout)
	}
	return s, nil
}

// settingError names the variable, its value unless that is secret, and what is wrong with it.
func settingError(err error) error {
	parse, ok := err.(*envconfig.ParseError)
	if !ok {
		return err
	}
	want, public := map[string]string{
		"bool":          "must be true or false",
		"int":           "must be a whole number",
		"int64":         "must be a whole number",
		"time.Duration": "must be a duration, such as 30m",
		"slog.Level":    "must be debug, info, warn or error",
	}[parse.TypeName]
	if !public { // a key, even if a wrong one
		return fmt.Errorf("%s: %w", parse.KeyName, parse.Err)
	}
	return fmt.Errorf("%s=%q: %s", parse.KeyName, parse.Value, want)
}

// describeSettings is a table of all settings, for --help and the documentation.
func describeSettings() (string, error) {
	const row = "{{range .}}{{usage_key .}}\t{{usage_description .}}{{if usage_default .}} (default {{usage_default .}}){{end}}\n{{end}}"
	var table bytes.Buffer
	columns := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	if err := envconfig.Usagef(envPrefix, &settings{}, columns, row); err != nil {
		return "", err
	}
	err := columns.Flush()
	return table.String(), err
}

// stateKey is a key for mcpbridge.Options.StateKey, written in base64.
type stateKey []byte

// Decode implements envconfig.Decoder.
func (k *stateKey) Decode(text string) error {
	if text == "" {
		return nil
	}
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil || len(key) != mcpbridge.StateKeySize {
		return fmt.Errorf("not %d bytes in base64: make one with `head -c %d /dev/urandom | base64`", mcpbridge.StateKeySize, mcpbridge.StateKeySize)
	}
	*k = key
	return nil
}

// payloadKeys are keys for codec.AES, written as codec.ParseKeys reads them.
type payloadKeys []codec.Key

// Decode implements envconfig.Decoder.
func (k *payloadKeys) Decode(text string) error {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	keys, err := codec.ParseKeys(text)
	*k = keys
	return err
}

// checkListen refuses addresses that others can reach, unless told otherwise.
func (s settings) checkListen() error {
	host, _, err := net.SplitHostPort(s.Listen)
	if err != nil {
		return fmt.Errorf("listen address %q: write host:port, such as 127.0.0.1:8080", s.Listen)
	}
	ip := net.ParseIP(host)
	if s.Insecure || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("listen address %q can be reached by others, and callers are not authenticated: listen on 127.0.0.1, or say --insecure if something in front of taskbridge protects it", s.Listen)
}
