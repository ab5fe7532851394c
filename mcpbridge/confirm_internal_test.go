package mcpbridge

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestArgumentsDigest: a confirmation is bound to what the workflow will get, digit by digit.
func TestArgumentsDigest(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{`{"a":1,"b":[2]}`, `{ "b": [ 2 ], "a": 1 }`, true},
		{``, `{}`, true},
		{`{"s":"\u00e9"}`, `{"s":"é"}`, true},
		{`{"n":9007199254740992}`, `{"n":9007199254740993}`, false},
		{`{"n":1.0}`, `{"n":1.00000000000000000001}`, false},
		{`{"a":1}`, `{"a":"1"}`, false},
	} {
		a, err := argumentsDigest([]byte(test.a))
		require.NoError(t, err)
		b, err := argumentsDigest([]byte(test.b))
		require.NoError(t, err)
		assert.Equal(t, test.same, string(a) == string(b), "%s and %s", test.a, test.b)
	}
}
