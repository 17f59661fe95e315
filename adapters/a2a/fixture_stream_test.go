package a2a_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
)

// stream is a stream of items.
type stream struct {
	t      *testing.T
	b      binding
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	alive  int // comments so far
}

// stream opens a stream, which ends with the test.
func (f *fixture) stream(b binding, agent, method, params string, headers ...string) *stream {
	f.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp := f.open(ctx, b, agent, method, params, headers...)
	s := &stream{f.t, b, resp, bufio.NewReader(resp.Body), cancel, 0}
	f.t.Cleanup(s.close)
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		body, _ := io.ReadAll(resp.Body)
		f.t.Fatalf("%s: got %s %s, want a stream", method, got, body)
	}
	return s
}

func (s *stream) close() {
	s.cancel()
	s.resp.Body.Close()
}

// next returns the next item, and false at the end of the stream.
func (s *stream) next() (wire.StreamResponse, bool) {
	s.t.Helper()
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return wire.StreamResponse{}, false
		}
		line = strings.TrimSuffix(line, "\n")
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			if strings.HasPrefix(line, ":") {
				s.alive++
			} else if line != "" {
				s.t.Fatalf("got the line %q, want data or a comment", line)
			}
			continue
		}
		v, err := wire.Parse([]byte(data))
		if err != nil {
			s.t.Fatalf("%s: %v", data, err)
		}
		if s.b == rpc {
			if id := string(v.Get("id").Raw()); id != "7" {
				s.t.Fatalf("got %s, want an item with the id of the request", data)
			}
			v = v.Get("result")
		}
		item, err := new(wire.ItemReader).Read(v)
		if err != nil {
			s.t.Fatalf("%s: %v", data, err)
		}
		if item.Task != nil || item.Message != nil || item.StatusUpdate != nil || item.ArtifactUpdate != nil { // else it is of a kind that nobody knows
			conforms(s.t, wire.MethodStream, v.Raw())
		}
		return item, true
	}
}

// rest returns all items up to the end of the stream.
func (s *stream) rest() (all []wire.StreamResponse) {
	s.t.Helper()
	for {
		item, ok := s.next()
		if !ok {
			return all
		}
		all = append(all, item)
	}
}

// textOf returns the text of the artifact answer in items.
func textOf(items []wire.StreamResponse) string {
	var b strings.Builder
	for _, i := range items {
		switch {
		case i.Task != nil:
			b.WriteString(answerOf(*i.Task))
		case i.ArtifactUpdate != nil && i.ArtifactUpdate.Artifact.ID == "answer":
			b.WriteString(wire.Text(i.ArtifactUpdate.Artifact.Parts))
		}
	}
	return b.String()
}

func answerOf(t wire.Task) string {
	for _, a := range t.Artifacts {
		if a.ID == "answer" {
			return wire.Text(a.Parts)
		}
	}
	return ""
}

// lastState returns the last state in items.
func lastState(items []wire.StreamResponse) (state wire.State) {
	for _, i := range items {
		switch {
		case i.Task != nil:
			state = i.Task.Status.State
		case i.StatusUpdate != nil:
			state = i.StatusUpdate.Status.State
		}
	}
	return state
}
