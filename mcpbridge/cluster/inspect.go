package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
)

// patience is how long Temporal may take for one answer.
const patience = 10 * time.Second

// inspector looks at one namespace.
type inspector struct {
	temporal  client.Client
	namespace string
	told      map[key]state // what is known already
	// attributes are the namespace's search attributes, nil until they are needed.
	attributes *operatorservice.ListSearchAttributesResponse
}

// key tells needs apart.
type key struct {
	subject string
	queue   string // where it is looked for, "" for anywhere
}

// need is something to look for.
type need struct {
	key
	look func(context.Context) (state, error)
}

// state is how something is.
type state struct {
	level   Level
	message string
}

func ok(format string, args ...any) state { return state{OK, fmt.Sprintf(format, args...)} }

func note(format string, args ...any) state { return state{Note, fmt.Sprintf(format, args...)} }

func wrong(format string, args ...any) state { return state{Error, fmt.Sprintf(format, args...)} }

// inspect looks for the namespace, and for what a tool needs of it.
func (i *inspector) inspect(ctx context.Context, tool string, needs []need) ([]Finding, error) {
	var findings []Finding
	for _, n := range append([]need{i.existence()}, needs...) {
		s, err := i.find(ctx, n)
		if err != nil {
			return nil, fmt.Errorf("look at %s: %w", n.subject, err)
		}
		findings = append(findings, Finding{Tool: tool, Level: s.level, Subject: n.subject, Message: s.message})
		if len(findings) == 1 && s.level == Error {
			break // nothing else can be there
		}
	}
	return findings, nil
}

// find looks once for what many tools need.
func (i *inspector) find(ctx context.Context, n need) (state, error) {
	if known, found := i.told[n.key]; found {
		return known, nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := n.look(ctx)
	if refused(err) {
		s, err = note("Temporal does not tell: %v", err), nil
	}
	if err == nil {
		i.told[n.key] = s
	}
	return s, err
}

// refused reports whether Temporal answers others, or other versions of it would.
func refused(err error) bool {
	var denied *serviceerror.PermissionDenied
	var unknown *serviceerror.Unimplemented
	var invalid *serviceerror.InvalidArgument
	return errors.As(err, &denied) || errors.As(err, &unknown) || errors.As(err, &invalid)
}
