package tasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	enumspb "go.temporal.io/api/enums/v1"

	"taskbridge/mcpbridge/catalog"
)

// maxIdempotencyKey is the length of a key in bytes.
const maxIdempotencyKey = 255

// isShared reports whether the task is one that a repeated call finds again.
func (start Start) isShared() bool {
	dedupe := start.Tool.Dedupe
	return dedupe != nil && !start.New && (dedupe.By == catalog.DedupeArguments || start.IdempotencyKey != "")
}

// startOnce starts a task unless the owner's task of the same call is there already.
func (s *Service) startOnce(ctx context.Context, owner string, n *namespace, start Start) (*Task, error) {
	if len(start.IdempotencyKey) > maxIdempotencyKey {
		return nil, invalidInput("%s has %d bytes: at most %d are allowed", catalog.IdempotencyKey, len(start.IdempotencyKey), maxIdempotencyKey)
	}
	digest, err := start.digest()
	if err != nil {
		return nil, err
	}
	at := address{workflow: sharedID(owner, digest), digest: digest}
	policy := enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE // unless it runs
	if start.Tool.Dedupe.AfterCompletion {
		policy = enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE_FAILED_ONLY
	}
	task, err := n.start(ctx, at, start, policy)
	if errors.Is(err, ErrExists) {
		if task, err = s.existing(ctx, at, start); !errors.Is(err, ErrNotFound) {
			return task, err
		}
		// Nobody can read it any more.
		task, err = n.start(ctx, at, start, enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE)
		if errors.Is(err, ErrExists) { // somebody else was faster
			return s.existing(ctx, at, start)
		}
	}
	if err != nil {
		return nil, err
	}
	s.remember(at, n)
	s.created.add(owner, task)
	return task, nil
}

// existing is the task that a call shares with an earlier one.
func (s *Service) existing(ctx context.Context, at address, start Start) (*Task, error) {
	task, err := s.read(ctx, at, "")
	if err != nil {
		return nil, err
	}
	if task.expired(time.Now()) || s.isDeleted(task) {
		return nil, ErrNotFound
	}
	digest, err := start.argumentsDigest()
	if err == nil && digest != task.meta.ArgumentsDigest {
		err = invalidInput("%s %q has been used with other arguments: use a new key for another call", catalog.IdempotencyKey, start.IdempotencyKey)
	}
	return task, err
}

// digest is what calls have in common that share a task.
func (start Start) digest() (string, error) {
	same := start.IdempotencyKey
	if start.Tool.Dedupe.By == catalog.DedupeArguments {
		arguments, err := start.argumentsDigest()
		if err != nil {
			return "", err
		}
		same = arguments
	}
	sum := sha256.Sum256([]byte(start.Tool.Name + "\x00" + string(start.Tool.Dedupe.By) + "\x00" + same))
	return hex.EncodeToString(sum[:16]), nil
}

func (start Start) argumentsDigest() (string, error) {
	digest, err := ArgumentsDigest(start.Given)
	if err != nil {
		return "", invalidInput("arguments: %v", err)
	}
	return hex.EncodeToString(digest), nil
}

// ArgumentsDigest is the same for arguments that differ in white space and member order only. Numbers count as they are
// written, which is how the workflow gets them. No arguments are an empty object.
func ArgumentsDigest(arguments json.RawMessage) ([]byte, error) {
	value := jsontext.Value(arguments).Clone()
	if len(value) == 0 {
		value = jsontext.Value("{}")
	}
	if err := value.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false)); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	digest := sha256.Sum256(value)
	return digest[:], nil
}

// sharedID is the workflow ID of a task that calls of an owner share.
func sharedID(owner, digest string) string { return workflowID(owner, onceKind+":"+digest) }
