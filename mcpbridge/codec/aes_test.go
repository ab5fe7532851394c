package codec_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"

	"taskbridge/mcpbridge/codec"
)

func secret(b byte, size int) []byte { return bytes.Repeat([]byte{b}, size) }

func newAES(t testing.TB, keys ...codec.Key) *codec.AES {
	t.Helper()
	c, err := codec.NewAES(keys...)
	require.NoError(t, err)
	return c
}

func payload(t testing.TB, value any) *commonpb.Payload {
	t.Helper()
	p, err := converter.GetDefaultDataConverter().ToPayload(value)
	require.NoError(t, err)
	return p
}

func encode(t testing.TB, c converter.PayloadCodec, p *commonpb.Payload) *commonpb.Payload {
	t.Helper()
	encoded, err := c.Encode([]*commonpb.Payload{p})
	require.NoError(t, err)
	require.Len(t, encoded, 1)
	return encoded[0]
}

func decode(c converter.PayloadCodec, p *commonpb.Payload) (*commonpb.Payload, error) {
	decoded, err := c.Decode([]*commonpb.Payload{p})
	if err != nil {
		return nil, err
	}
	return decoded[0], nil
}

func TestEveryKeySizeEncrypts(t *testing.T) {
	for _, size := range []int{16, 24, 32} {
		c := newAES(t, codec.Key{ID: "k", Secret: secret(1, size)})
		plain := payload(t, "to be or not to be")
		encrypted := encode(t, c, plain)
		assert.NotContains(t, string(encrypted.GetData()), "to be")
		assert.NotEqual(t, encrypted.GetData(), encode(t, c, plain).GetData(), "each has a nonce of its own")
		back, err := decode(c, encrypted)
		require.NoError(t, err)
		assert.True(t, proto.Equal(plain, back), "%d bytes: %v", size, back)
	}
}

// The payload was written by the program in temporalio/samples-go, directory encryption, with the key that it contains.
func TestReadsWhatTemporalsSampleWrote(t *testing.T) {
	const written = "ChwKCGVuY29kaW5nEhBiaW5hcnkvZW5jcnlwdGVkChkKEWVuY3J5cHRpb24ta2V5LWlkEgR0ZXN0EljvZ2cbifK3OEcn2EPbVTAW0BsE" +
		"eab0PwMjo8VGcM3vjSB1l9Jc1Jd/MlVXvWDUqWHuni+Uc93EF0+95FYo4rdbbiym16eOwmmLpCfN0czZnFjiIJRNqYZU"
	encoded, err := base64.StdEncoding.DecodeString(written)
	require.NoError(t, err)
	sample := new(commonpb.Payload)
	require.NoError(t, proto.Unmarshal(encoded, sample))

	c := newAES(t, codec.Key{ID: "test", Secret: []byte("test-key-test-key-test-key-test!")})
	plain, err := decode(c, sample)
	require.NoError(t, err)
	assert.True(t, proto.Equal(payload(t, "Temporal's own sample wrote this"), plain), "%v", plain)

	ours := encode(t, c, plain)
	assert.Equal(t, sample.GetMetadata(), ours.GetMetadata())
	assert.Len(t, ours.GetData(), len(sample.GetData()))
}

func TestKeysAreRotated(t *testing.T) {
	a, b := codec.Key{ID: "a", Secret: secret(1, 32)}, codec.Key{ID: "b", Secret: secret(2, 16)}
	old, rotated, onlyNew := newAES(t, a), newAES(t, b, a), newAES(t, b)
	plain := payload(t, map[string]int{"n": 1})

	back, err := decode(rotated, encode(t, old, plain))
	require.NoError(t, err)
	assert.True(t, proto.Equal(plain, back))
	assert.Equal(t, "b", string(encode(t, rotated, plain).GetMetadata()["encryption-key-id"]), "the first key encrypts")

	_, err = decode(onlyNew, encode(t, old, plain))
	assert.EqualError(t, err, `a payload is encrypted with key "a", which is not here: add it to TASKBRIDGE_PAYLOAD_KEYS`)
	var retried *converter.WorkflowTaskFailureError
	assert.ErrorAs(t, err, &retried, "no reason to fail a workflow")
}

func TestUnencryptedPayloadsPass(t *testing.T) {
	plain := payload(t, "from before")
	back, err := decode(newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)}), plain)
	require.NoError(t, err)
	assert.True(t, proto.Equal(plain, back))
}

func TestDamageIsTold(t *testing.T) {
	right := newAES(t, codec.Key{ID: "a", Secret: secret(1, 32)})
	otherSecret := newAES(t, codec.Key{ID: "a", Secret: secret(2, 32)})

	_, err := decode(otherSecret, encode(t, right, payload(t, "x")))
	assert.ErrorContains(t, err, `key "a" cannot be read: either TASKBRIDGE_PAYLOAD_KEYS has another key under that ID`)

	changed := encode(t, right, payload(t, "x"))
	changed.Data[20] ^= 1
	_, err = decode(right, changed)
	assert.ErrorContains(t, err, "or the payload was changed")

	changed.Data = changed.Data[:5]
	_, err = decode(right, changed)
	assert.ErrorContains(t, err, "has only 5 bytes")
}

func TestKeysInASetting(t *testing.T) {
	key := func(size int) string { return base64.StdEncoding.EncodeToString(secret(7, size)) }
	keys, err := codec.ParseKeys("2026-08:" + key(32) + ", old:" + key(16))
	require.NoError(t, err)
	assert.Equal(t, []codec.Key{{ID: "2026-08", Secret: secret(7, 32)}, {ID: "old", Secret: secret(7, 16)}}, keys)

	for text, message := range map[string]string{
		"":                               "key 1 has no ID: write ID:BASE64",
		key(32):                          "key 1 has no ID",
		":" + key(32):                    "key 1 has no ID",
		"a:" + key(32) + ",":             "key 2 has no ID",
		"a:no base64!":                   "key 1 is not in base64",
		key(32) + ":2026-08":             "key 1 has a key where its ID belongs",
		"a:" + key(20):                   `key "a" has 20 bytes: an AES key has 16, 24 or 32`,
		"a:":                             `key "a" has 0 bytes`,
		"a:" + key(32) + ",a:" + key(16): `two keys have the ID "a"`,
	} {
		_, err := codec.ParseKeys(text)
		assert.ErrorContains(t, err, message, text)
		assert.NotContains(t, err.Error(), key(32)[:8], "no part of a key is told")
	}
	_, err = codec.NewAES()
	assert.ErrorContains(t, err, "no key")
}

func TestKeysAreNotPrinted(t *testing.T) {
	key := codec.Key{ID: "a", Secret: []byte("0123456789abcdef")}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s"} {
		printed := fmt.Sprintf(verb+verb, key, []codec.Key{key})
		assert.NotContains(t, printed, "0123", verb)
		assert.NotContains(t, printed, "48 49 50", verb)
		assert.False(t, strings.Contains(printed, "0x30"), verb)
	}
}
