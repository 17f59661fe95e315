package hub

import (
	"context"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// Child returns a second session for the same connection, with a Next of its own. What
// the branch asks counts as asked by s: the causes and the loop guard of s hold for it
// (promise P10). It is no agent. The caller closes it; it ends with s at the latest.
func (s *Session) Child() *Session {
	h, parent := s.hub, s.root()
	b := newSession(h, s.identity)
	b.parent = parent
	parent.mu.Lock()
	b.card = parent.card
	parent.mu.Unlock()
	h.connect(b)
	h.mu.Lock()
	gone := parent.closed
	if !gone && !b.closed {
		parent.mu.Lock()
		parent.children.put(b, struct{}{})
		parent.mu.Unlock()
	}
	h.mu.Unlock()
	if gone {
		b.Close(core.NewFault(core.CodeUnreachable, "the connection has ended"))
	}
	return b
}

// root returns the session in whose name s acts: itself, unless it is a branch.
func (s *Session) root() *Session {
	if s.parent != nil {
		return s.parent
	}
	return s
}

// Call calls a tool in the name of the session and waits for its result, which Next does
// not return. When ctx ends, Call returns its cause, and
// what the tool asked is cancelled unless it was to be kept. When the session ends
// first, Call returns why.
func (s *Session) Call(ctx context.Context, name string, input json.RawMessage) (*tool.Result, error) {
	b := s.Child()
	defer b.Close(core.NewFault(core.CodeCancelled, "the call has ended"))
	b.CallTool("", name, input)
	for {
		next, err := b.Next(ctx)
		if err != nil {
			return nil, err
		}
		if next.Tool != nil {
			return next.Tool, nil
		}
	}
}
