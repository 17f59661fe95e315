package mcp_test

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
)

// eventStream reads the messages of a stream.
type eventStream struct {
	t     *testing.T
	lines *bufio.Scanner
}

func newEventStream(t *testing.T, r io.Reader) *eventStream {
	t.Helper()
	s := &eventStream{t, bufio.NewScanner(r)}
	s.lines.Buffer(nil, 64<<20)
	return s
}

// streamMessage is a message in a stream.
type streamMessage struct {
	rpc
	Method string
	Params json.RawMessage
}

// next returns the next message; false at the end of the stream.
func (s *eventStream) next() (m streamMessage, ok bool) {
	s.t.Helper()
	for s.lines.Scan() {
		if data, ok := strings.CutPrefix(s.lines.Text(), "data: "); ok {
			if err := json.Unmarshal([]byte(data), &m); err != nil {
				s.t.Fatalf("got %q, want a message: %v", data, err)
			}
			return m, true
		}
	}
	if err := s.lines.Err(); err != nil {
		s.t.Fatalf("the stream: got %v, want a message or its end", err)
	}
	return m, false
}

// until returns the next message with the method, "" for the answer.
func (s *eventStream) until(method string) streamMessage {
	s.t.Helper()
	for {
		m, ok := s.next()
		if !ok {
			s.t.Fatalf("the stream has ended, want %q", method)
		}
		if m.Method == method {
			return m
		}
	}
}

// outcome returns the result of a tool in the answer.
func (s *eventStream) outcome() outcome {
	s.t.Helper()
	var o outcome
	if err := json.Unmarshal(s.until("").Result, &o); err != nil {
		s.t.Fatal(err)
	}
	return o
}
