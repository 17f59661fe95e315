package core

import (
	"encoding/hex"
	"strings"
)

// Trace ties a call to the trace of its caller, and a task to its span, in the form of W3C Trace
// Context. The zero Trace is none.
type Trace struct {
	// Parent is the traceparent: of a call the span of its caller, of a task its own span, which
	// is carried on to those who work on it. A task that is not sampled has that of its caller.
	Parent string `json:"traceparent,omitempty"`
	// State is the tracestate.
	State string `json:"tracestate,omitempty"`
	// Above is the traceparent of the span above that of a task; "" for none. In another trace it
	// is a link. It is that of Parent if the task has no span of its own. It comes from the hub.
	Above string `json:"above,omitempty"`
	// Tool is the tool of the hub by which a task was opened, if no task shows the call of it. It
	// comes from the hub.
	Tool string `json:"tool,omitempty"`
}

// The keys of a trace context: of headers in HTTP, of metadata in gRPC and of _meta in MCP and ACP.
const (
	TraceparentKey = "traceparent"
	TracestateKey  = "tracestate"
)

// TraceOf returns the trace context in the headers of an HTTP request, whose names have their canonical form. It may be
// malformed: see [Trace.Carried].
func TraceOf(header map[string][]string) Trace {
	return TraceFrom(header["Traceparent"], header["Tracestate"])
}

// TraceFrom is [TraceOf] of the values that [TraceparentKey] and [TracestateKey] have elsewhere.
func TraceFrom(parent, state []string) Trace {
	if len(parent) != 1 {
		return Trace{}
	}
	return Trace{Parent: parent[0], State: strings.Join(state, ",")}
}

// Each calls set with the keys and values that carry the trace on; not at all if there is none.
func (t Trace) Each(set func(key, value string)) {
	if t.Parent == "" {
		return
	}
	set(TraceparentKey, t.Parent)
	if t.State != "" {
		set(TracestateKey, t.State)
	}
}

// Span names a span and its trace: what a traceparent says. The zero Span is none.
type Span struct {
	Trace   [16]byte
	ID      [8]byte
	Sampled bool
}

// The bounds of a tracestate (W3C Trace Context, 3.3).
const (
	maxTraceState   = 512
	maxTraceMembers = 32
)

const traceparentLength = 55 // of version 00

// Span reads the traceparent. It reports false for one that is missing or malformed (W3C Trace
// Context, 3.2). Later versions are read as far as the first one goes.
func (t Trace) Span() (s Span, ok bool) {
	p := t.Parent
	if len(p) < traceparentLength || p[2] != '-' || p[35] != '-' || p[52] != '-' {
		return Span{}, false
	}
	var version, flags [1]byte
	switch {
	case !lowerHex(version[:], p[:2]) || version[0] == 0xff,
		len(p) > traceparentLength && (version[0] == 0 || p[traceparentLength] != '-'),
		!lowerHex(s.Trace[:], p[3:35]) || s.Trace == [16]byte{},
		!lowerHex(s.ID[:], p[36:52]) || s.ID == [8]byte{},
		!lowerHex(flags[:], p[53:55]):
		return Span{}, false
	}
	s.Sampled = flags[0]&1 != 0
	return s, true
}

// lowerHex decodes hexadecimal digits, of which those in upper case are not allowed.
func lowerHex(out []byte, text string) bool {
	_, err := hex.Decode(out, []byte(text))
	return err == nil && strings.ToLower(text) == text
}

// String returns the traceparent of the span.
func (s Span) String() string {
	var b [traceparentLength]byte
	copy(b[:], "00-")
	hex.Encode(b[3:], s.Trace[:])
	b[35] = '-'
	hex.Encode(b[36:], s.ID[:])
	copy(b[52:], "-00")
	if s.Sampled {
		b[54] = '1'
	}
	return string(b[:])
}

// TraceID returns the id of the trace in hexadecimal digits, as logs have it; "" for none.
func (t Trace) TraceID() string {
	if _, ok := t.Span(); !ok {
		return ""
	}
	return t.Parent[3:35]
}

// IsSampled reports whether the trace is recorded.
func (t Trace) IsSampled() bool {
	s, ok := t.Span()
	return ok && s.Sampled
}

// Carried returns what of a trace context from outside counts: nothing if the traceparent is
// malformed, and no tracestate that is malformed or too long.
func (t Trace) Carried() Trace {
	s, ok := t.Span()
	if !ok {
		return Trace{}
	}
	if len(t.Parent) > traceparentLength || t.Parent[:2] != "00" {
		t.Parent = s.String()
	}
	if !validTraceState(t.State) {
		t.State = ""
	}
	return Trace{Parent: t.Parent, State: t.State}
}

func validTraceState(state string) bool {
	if len(state) > maxTraceState || strings.Count(state, ",") >= maxTraceMembers {
		return false
	}
	for i := range len(state) {
		if c := state[i]; c < ' ' || c > '~' {
			return false
		}
	}
	for state != "" {
		var member string
		member, state, _ = strings.Cut(state, ",")
		if member = strings.Trim(member, " "); member != "" && strings.IndexByte(member, '=') < 1 {
			return false
		}
	}
	return true
}
