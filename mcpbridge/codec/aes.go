package codec

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"google.golang.org/protobuf/proto"
)

// What marks an encrypted payload, as in the encryption samples of Temporal's SDKs.
const (
	encodingEncrypted = "binary/encrypted"
	metadataKeyID     = "encryption-key-id"
)

// KeysVariable is the environment variable from which taskbridge's programs take their keys; see [ParseKeys].
const KeysVariable = "TASKBRIDGE_PAYLOAD_KEYS"

// Key is an AES key. Its ID is not secret: it stands next to everything that the key encrypts.
type Key struct {
	ID     string
	Secret []byte // 16, 24 or 32 bytes
}

// String is the key's ID.
func (k Key) String() string { return k.ID }

// GoString keeps the secret out of what %#v prints.
func (k Key) GoString() string { return fmt.Sprintf("codec.Key{ID: %q}", k.ID) }

// ParseKeys reads keys written as "id:base64,id:base64". No error contains any part of a key.
func ParseKeys(text string) ([]Key, error) {
	const form = "write ID:BASE64, several of them with commas between, such as 2026-08:BASE64; `head -c 32 /dev/urandom | base64` makes the base64 of a key"
	var keys []Key
	for i, item := range strings.Split(text, ",") {
		id, encoded, found := strings.Cut(strings.TrimSpace(item), ":")
		if !found || id == "" {
			return nil, fmt.Errorf("key %d has no ID: %s", i+1, form)
		}
		if isSecret(id) {
			return nil, fmt.Errorf("key %d has a key where its ID belongs: %s", i+1, form)
		}
		secret, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			return nil, fmt.Errorf("key %d is not in base64: %s", i+1, form)
		}
		keys = append(keys, Key{id, secret})
	}
	return keys, checkKeys(keys)
}

// isSecret reports whether an ID rather is a key: IDs are shown.
func isSecret(id string) bool {
	secret, err := base64.StdEncoding.DecodeString(id)
	return err == nil && isKeySize(len(secret))
}

func isKeySize(size int) bool { return size == 16 || size == 24 || size == 32 }

func checkKeys(keys []Key) error {
	if len(keys) == 0 {
		return errors.New("there is no key to encrypt with")
	}
	seen := map[string]bool{}
	for _, key := range keys {
		switch size := len(key.Secret); {
		case key.ID == "":
			return errors.New("a key has no ID")
		case seen[key.ID]:
			return fmt.Errorf("two keys have the ID %q: give each its own", key.ID)
		case !isKeySize(size):
			return fmt.Errorf("key %q has %d bytes: an AES key has 16, 24 or 32; `head -c 32 /dev/urandom | base64` makes one", key.ID, size)
		}
		seen[key.ID] = true
	}
	return nil
}

// AES encrypts payloads with AES in Galois/Counter Mode. It writes and reads the format of the encryption samples of
// Temporal's SDKs: the encrypted payload's data is a nonce of 12 bytes and the ciphertext of the whole payload. Its methods
// may be called from several goroutines.
type AES struct {
	first   string // ID of the key that encrypts
	ciphers map[string]cipher.AEAD
}

var _ converter.PayloadCodec = (*AES)(nil)

// NewAES makes a codec that encrypts with the first key and decrypts with all of them.
func NewAES(keys ...Key) (*AES, error) {
	if err := checkKeys(keys); err != nil {
		return nil, err
	}
	c := &AES{first: keys[0].ID, ciphers: map[string]cipher.AEAD{}}
	for _, key := range keys {
		block, err := aes.NewCipher(key.Secret)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key.ID, err)
		}
		if c.ciphers[key.ID], err = cipher.NewGCM(block); err != nil {
			return nil, fmt.Errorf("key %q: %w", key.ID, err)
		}
	}
	return c, nil
}

// Encode implements converter.PayloadCodec.
func (c *AES) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return each(payloads, c.encrypt)
}

// Decode implements converter.PayloadCodec. Payloads that are not encrypted pass: they are from before there was a key.
func (c *AES) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	return each(payloads, c.decrypt)
}

func each(payloads []*commonpb.Payload, convert func(*commonpb.Payload) (*commonpb.Payload, error)) ([]*commonpb.Payload, error) {
	result := make([]*commonpb.Payload, len(payloads))
	for i, payload := range payloads {
		var err error
		if result[i], err = convert(payload); err != nil {
			// In a data converter, a plain error would fail the workflow for what the right key can still read.
			return nil, converter.NewWorkflowTaskFailureError(err)
		}
	}
	return result, nil
}

func (c *AES) encrypt(payload *commonpb.Payload) (*commonpb.Payload, error) {
	plain, err := proto.Marshal(payload)
	if err != nil {
		return nil, fmt.Errorf("marshal payload: %w", err)
	}
	gcm := c.ciphers[c.first]
	nonce := make([]byte, gcm.NonceSize(), gcm.NonceSize()+len(plain)+gcm.Overhead())
	_, _ = rand.Read(nonce) // never fails
	return &commonpb.Payload{
		Metadata: map[string][]byte{
			converter.MetadataEncoding: []byte(encodingEncrypted),
			metadataKeyID:              []byte(c.first),
		},
		Data: gcm.Seal(nonce, nonce, plain, nil),
	}, nil
}

func (c *AES) decrypt(payload *commonpb.Payload) (*commonpb.Payload, error) {
	if string(payload.GetMetadata()[converter.MetadataEncoding]) != encodingEncrypted {
		return payload, nil
	}
	id := string(payload.GetMetadata()[metadataKeyID])
	gcm, known := c.ciphers[id]
	if !known {
		return nil, fmt.Errorf("a payload is encrypted with key %q, which is not here: add it to %s", id, KeysVariable)
	}
	data := payload.GetData()
	if len(data) < gcm.NonceSize() {
		return nil, fmt.Errorf("a payload encrypted with key %q has only %d bytes: it is damaged", id, len(data))
	}
	plain, err := gcm.Open(nil, data[:gcm.NonceSize()], data[gcm.NonceSize():], nil)
	if err != nil {
		return nil, fmt.Errorf("a payload encrypted with key %q cannot be read: either %s has another key under that ID than whoever encrypted it, or the payload was changed", id, KeysVariable)
	}
	decrypted := new(commonpb.Payload)
	if err := proto.Unmarshal(plain, decrypted); err != nil {
		return nil, fmt.Errorf("unmarshal a payload encrypted with key %q: %w", id, err)
	}
	return decrypted, nil
}
