package main

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// A sealer signs the request state of dialogues, so that a client can only return what this process gave out.
type sealer struct{ key []byte }

type dialogueState struct {
	Dialogue string            `json:"dialogue"`
	Answers  map[string]string `json:"answers"`
}

func newSealer() sealer {
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(key) // documented never to fail
	return sealer{key: key}
}

func (s sealer) close(dialogue string, answers map[string]string) string {
	payload, _ := json.Marshal(dialogueState{Dialogue: dialogue, Answers: answers}) // strings only: cannot fail
	body := base64.RawURLEncoding.EncodeToString(payload)
	return body + "." + base64.RawURLEncoding.EncodeToString(s.sign(body))
}

func (s sealer) open(dialogue, sealed string) (map[string]string, error) {
	body, encoded, _ := strings.Cut(sealed, ".")
	signature, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil || !hmac.Equal(signature, s.sign(body)) {
		return nil, errors.New("not issued by this server, or changed since")
	}
	payload, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, err
	}
	var state dialogueState
	if err := json.Unmarshal(payload, &state); err != nil {
		return nil, err
	}
	if state.Dialogue != dialogue {
		return nil, errors.New("issued for " + state.Dialogue + ", not for " + dialogue)
	}
	return state.Answers, nil
}

func (s sealer) sign(body string) []byte {
	mac := hmac.New(sha256.New, s.key)
	mac.Write([]byte(body))
	return mac.Sum(nil)
}
