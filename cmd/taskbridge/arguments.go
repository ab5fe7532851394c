package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// readArguments reads a tool's arguments from the command line: JSON, @file, or - for stdin; none are {}.
func readArguments(args []string, stdin io.Reader) ([]byte, error) {
	if len(args) == 0 {
		return []byte("{}"), nil
	}
	text, from := []byte(args[0]), ""
	var err error
	if name, ok := strings.CutPrefix(args[0], "@"); ok {
		from = " in " + args[0]
		text, err = os.ReadFile(name)
	} else if args[0] == "-" {
		from = " on stdin"
		text, err = io.ReadAll(stdin)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, usageErrorf("%s: no such file", args[0])
	}
	if err != nil {
		return nil, usageErrorf("arguments%s: %w", from, err)
	}
	if err := checkObject(text); err != nil {
		return nil, usageErrorf("arguments%s %w", from, err)
	}
	return text, nil
}

// checkObject checks that text is one JSON object. The error continues a sentence that names the text.
func checkObject(text []byte) error {
	var value jsontext.Value
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("are empty: write a JSON object, such as {}")
	}
	err := json.Unmarshal(text, &value)
	if syntactic := (*jsontext.SyntacticError)(nil); errors.As(err, &syntactic) {
		return fmt.Errorf("are not JSON: %w at byte %d: %s", syntactic.Err, syntactic.ByteOffset, excerpt(text, int(syntactic.ByteOffset)))
	}
	if err != nil {
		return fmt.Errorf("are not JSON: %w", err)
	}
	if value.Kind() != '{' {
		return fmt.Errorf(`must be a JSON object such as {"name": "value"}, not %s`, excerpt(text, 0))
	}
	return nil
}

// excerpt is the surrounding of a byte of text.
func excerpt(text []byte, at int) string {
	const before, after = 20, 20
	start, end := max(0, at-before), min(len(text), at+after)
	shown := strings.ToValidUTF8(strings.Join(strings.Fields(string(text[start:end])), " "), "")
	if start > 0 {
		shown = "…" + shown
	}
	if end < len(text) {
		shown += "…"
	}
	return shown
}

// example is JSON to show how an object of a schema is written: it has the required properties.
func example(schema []byte) string {
	fields, err := parseObject(schema)
	if err != nil {
		return "{}"
	}
	var members []string
	for _, f := range fields {
		if f.Required {
			members = append(members, fmt.Sprintf("%q:%s", f.Name, f.example()))
		}
	}
	return "{" + strings.Join(members, ",") + "}"
}
