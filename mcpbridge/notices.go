package mcpbridge

import (
	"context"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"taskbridge/mcpbridge/internal/rpc"
	"taskbridge/mcpbridge/internal/session"
)

// What the go-sdk tells subscriptions: that lists or resources have changed. It knows one subscription per session, sends no
// keep-alives, does not end a stream gracefully, and sends to all subscribers one after the other. So each subscription of
// ours that is about such things is the only one in an SDK session of its own, and what that says is kept until the
// subscription takes it.

// notices are what a session of the go-sdk has said that its subscription has not taken yet. What is said twice is kept
// once, so that they stay as few as the things to which the client listens.
type notices struct {
	id   jsontext.Value // of the client's request
	came chan struct{}  // has a value while there are any
	// acknowledged gets the first message: the acknowledgement, or the error in place of it.
	acknowledged chan rpc.Message
	once         sync.Once

	mu   sync.Mutex
	kept []notice
	same map[string]bool // by message
}

type notice struct {
	method string
	params jsontext.Value
}

func newNotices(id jsontext.Value) *notices {
	return &notices{id: id, came: make(chan struct{}, 1), acknowledged: make(chan rpc.Message, 1), same: map[string]bool{}}
}

// baseOnly is the dialect of sessions that have none.
type baseOnly struct{}

// Serves implements [session.Dialect].
func (baseOnly) Serves(*session.Call) bool { return false }

// Serve implements [session.Dialect].
func (baseOnly) Serve(context.Context, *session.Call) ([]byte, *rpc.Error) { return nil, nil }

// subscribe passes a subscription to the go-sdk. What comes goes to the notices, until the session ends.
func (d *modern) subscribe(ctx context.Context, r *request, to *notices) *session.Session {
	s := session.New(ctx, "", d.server, baseOnly{}, to, d.log)
	s.Receive(rpc.Message{ID: jsontext.Value("1"), Method: r.method, Params: r.raw}, r.header, to)
	return s
}

// agreed waits for what the go-sdk agrees to, by members of the filter.
func (n *notices) agreed(ctx context.Context) (map[string]jsontext.Value, *rpc.Error) {
	select {
	case message := <-n.acknowledged:
		if message.Error != nil {
			refusal := new(rpc.Error)
			if err := json.Unmarshal(message.Error, refusal); err != nil {
				return nil, rpc.Errorf(rpc.CodeInternalError, "the base protocol's error cannot be read: %v", err)
			}
			return nil, refusal
		}
		params := struct {
			Notifications map[string]jsontext.Value `json:"notifications"`
		}{map[string]jsontext.Value{}}
		rpcErr := message.DecodeParams(&params)
		return params.Notifications, rpcErr
	case <-ctx.Done():
		return nil, rpc.Errorf(rpc.CodeInternalError, "%v", context.Cause(ctx))
	}
}

// Send implements [session.Outlet].
func (n *notices) Send(message []byte) {
	m, rpcErr := rpc.DecodeAny(message)
	if rpcErr != nil {
		return // it was encoded here
	}
	n.once.Do(func() { n.acknowledged <- m })
	params, ok := n.stamp(m.Params)
	if !ok || m.Method == "notifications/subscriptions/acknowledged" {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.same[string(message)] {
		return
	}
	n.same[string(message)] = true
	n.kept = append(n.kept, notice{m.Method, params})
	select {
	case n.came <- struct{}{}:
	default: // it has not been seen yet
	}
}

// Answer implements [session.Outlet].
func (n *notices) Answer(message []byte) {
	if m, rpcErr := rpc.DecodeAny(message); rpcErr == nil {
		n.once.Do(func() { n.acknowledged <- m })
	}
}

// take takes all that came.
func (n *notices) take() []notice {
	n.mu.Lock()
	defer n.mu.Unlock()
	kept := n.kept
	n.kept = nil
	clear(n.same)
	return kept
}

// stamp puts the ID of the client's subscription in place of the SDK session's. What has none belongs to no subscription.
func (n *notices) stamp(params jsontext.Value) (jsontext.Value, bool) {
	var members, meta map[string]jsontext.Value
	if json.Unmarshal(params, &members) != nil || json.Unmarshal(members["_meta"], &meta) != nil || meta[subscriptionID] == nil {
		return nil, false
	}
	meta[subscriptionID] = n.id
	encodedMeta, rpcErr := encode(meta)
	if rpcErr != nil {
		return nil, false
	}
	members["_meta"] = encodedMeta
	encoded, rpcErr := encode(members)
	return encoded, rpcErr == nil
}
