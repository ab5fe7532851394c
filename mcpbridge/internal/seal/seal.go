// Package seal protects state that travels through a client: sealed text can be neither read nor altered outside.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// Sealer seals and opens with one key (AES-256-GCM). Processes that share the key can open each other's seals.
type Sealer struct{ aead cipher.AEAD }

// New makes a sealer with a key of [KeySize] bytes, or with a random one if key is nil.
func New(key []byte) (*Sealer, error) {
	if key == nil {
		key = make([]byte, KeySize)
		if _, err := rand.Read(key); err != nil {
			return nil, err
		}
	}
	if len(key) != KeySize {
		return nil, fmt.Errorf("key has %d bytes, not %d", len(key), KeySize)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	aead, err := cipher.NewGCMWithRandomNonce(block)
	return &Sealer{aead}, err
}

// Seal encrypts and authenticates plain as URL-safe text.
func (s *Sealer) Seal(plain []byte) string {
	return base64.RawURLEncoding.EncodeToString(s.aead.Seal(nil, nil, plain, nil))
}

var errBroken = errors.New("sealed text is damaged, altered or sealed with another key")

// Open reverses Seal.
func (s *Sealer) Open(sealed string) ([]byte, error) {
	raw, err := base64.RawURLEncoding.DecodeString(sealed)
	if err != nil {
		return nil, errBroken
	}
	plain, err := s.aead.Open(nil, nil, raw, nil)
	if err != nil {
		return nil, errBroken
	}
	return plain, nil
}
