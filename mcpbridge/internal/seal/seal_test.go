package seal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSealedTextComesBackOnlyWhole(t *testing.T) {
	sealer, err := New(nil)
	require.NoError(t, err)
	sealed := sealer.Seal([]byte("secret"))
	assert.NotContains(t, sealed, "secret")
	assert.NotEqual(t, sealed, sealer.Seal([]byte("secret")), "every seal has a nonce of its own")

	plain, err := sealer.Open(sealed)
	require.NoError(t, err)
	assert.Equal(t, "secret", string(plain))

	altered := []byte(sealed)
	altered[len(altered)/2] ^= 1
	for _, broken := range []string{string(altered), sealed[:len(sealed)-4], "", "%%%"} {
		_, err := sealer.Open(broken)
		assert.Error(t, err, broken)
	}
	other, err := New(make([]byte, KeySize))
	require.NoError(t, err)
	_, err = other.Open(sealed)
	assert.Error(t, err, "another key")
}

func TestKeySize(t *testing.T) {
	_, err := New([]byte("short"))
	assert.EqualError(t, err, "key has 5 bytes, not 32")
}
