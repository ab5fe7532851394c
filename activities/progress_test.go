package activities

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
)

func TestLastLine(t *testing.T) {
	tests := []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"nothing to see", "\n \t\n\x1b[0m\r\n", ""},
		{"the last of several", "one\ntwo\n", "two"},
		{"before empty ones", "one\n\n\x1b[2K\n", "one"},
		{"redrawn with carriage returns", "10%\r20%\r30%\r", "30%"},
		{"colours", "\x1b[1;31mFAIL\x1b[0m pkg", "FAIL pkg"},
		{"window title and link", "\x1b]0;title\x07see \x1b]8;;http://x\x1b\\here\x1b]8;;\x1b\\", "see here"},
		{"short escapes", "\x1b(B\x1b=ok\x1bM", "ok"},
		{"control characters", "a\x00b\x7fc\u0085d\u009be\te", "abc de e"},
		{"text direction overrides", "a\u202eb\u2066c", "abc"},
		{"white space", "  a \t  b  ", "a b"},
		{"long", strings.Repeat("é", 130), strings.Repeat("é", 119) + "…"},
		{"not too long", strings.Repeat("é", 120), strings.Repeat("é", 120)},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { assert.Equal(t, test.want, lastLine(test.text)) })
	}
}

func FuzzLastLine(f *testing.F) {
	f.Add("\x1b[31mred\x1b[0m\r\nnext \xff\x1b]0;x")
	f.Fuzz(func(t *testing.T, text string) {
		line := lastLine(text)
		assert.True(t, utf8.ValidString(line))
		assert.LessOrEqual(t, utf8.RuneCountInString(line), statusLineRunes)
		assert.Equal(t, -1, strings.IndexFunc(line, func(r rune) bool { return !unicode.IsGraphic(r) }))
	})
}
