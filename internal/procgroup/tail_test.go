package procgroup

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTail(t *testing.T) {
	tests := []struct {
		name    string
		limit   int
		writes  []string
		text    string
		omitted int64
	}{
		{"nothing", 10, nil, "", 0},
		{"all of a short output", 10, []string{"one\n", "two"}, "one\ntwo", 0},
		{"exactly the limit", 5, []string{"12345"}, "12345", 0},
		{"the end of a long line", 5, []string{"123", "456", "789"}, "56789", 4},
		{"the end of one long write", 5, []string{strings.Repeat("x", 100) + "12345"}, "12345", 100},
		{"a near line start", 12, []string{"one two\nthree four"}, "three four", 8},
		{"no far line start", 12, []string{"one\ntwo three\nfour"}, "o three\nfour", 6},
		{"already at a line start", 8, []string{"one\na\nb\nfour"}, "a\nb\nfour", 4},
		{"no half a rune at the cut", 4, []string{"aé世x"}, "世x", 3},
		{"a rune split over writes", 10, []string{"a\xe4", "\xb8\x96"}, "a世", 0},
		{"invalid bytes are replaced", 10, []string{"a\xff\xfeb"}, "a��b", 0},
		{"and count as long as their replacement", 7, []string{"a\xff\xfeb"}, "��b", 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			tail := NewTail(test.limit)
			for _, part := range test.writes {
				n, err := tail.Write([]byte(part))
				require.NoError(t, err)
				require.Equal(t, len(part), n)
			}
			text, omitted := tail.Text()
			assert.Equal(t, test.text, text)
			assert.Equal(t, test.omitted, omitted)
			assert.EqualValues(t, len(strings.Join(test.writes, "")), tail.Total())
		})
	}
}

// FuzzTail compares with the plain definition: the text is a suffix of the whole output made valid, it is within the
// limit, and nothing depends on how the output was split into writes.
func FuzzTail(f *testing.F) {
	f.Add([]byte("one\ntwo\nthree four"), 7, 3)
	f.Add([]byte("aé世\U0001F600x\xff\xf0\x9f"), 5, 1)
	f.Fuzz(func(t *testing.T, output []byte, limit, step int) {
		if limit < 1 || limit > 1<<16 || step < 1 {
			return
		}
		tail, whole := NewTail(limit), NewTail(limit)
		_, _ = whole.Write(output)
		for rest := output; len(rest) > 0; {
			n := min(step, len(rest))
			_, _ = tail.Write(rest[:n])
			rest = rest[n:]
		}

		text, omitted := tail.Text()
		require.True(t, utf8.ValidString(text))
		require.LessOrEqual(t, len(text), limit)
		require.Equal(t, string([]rune(string(output[omitted:]))), text)
		require.True(t, strings.HasSuffix(string([]rune(string(output))), text), "no rune is torn")

		wholeText, wholeOmitted := whole.Text()
		require.Equal(t, wholeText, text)
		require.Equal(t, wholeOmitted, omitted)
	})
}
