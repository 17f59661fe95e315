package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
)

// reader reads a stream of events.
type reader struct {
	t      *testing.T
	resp   *http.Response
	lines  *bufio.Reader
	cancel context.CancelFunc
	// validated are the kinds that were validated against the document: one of each is enough.
	validated map[string]bool
}

// message is one server-sent event, or one JSON line.
type message struct {
	id, event string
	data      []byte
	comment   bool
}

// follow opens a stream, and fails the test if it gets none.
func (g *testServer) follow(method, path, body string, headers ...string) *reader {
	g.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	resp := g.request(ctx, method, path, body, headers...)
	r := &reader{g.t, resp, bufio.NewReaderSize(resp.Body, 1<<20), cancel, map[string]bool{}}
	g.t.Cleanup(r.leave)
	if resp.StatusCode != http.StatusOK {
		b, _ := io.ReadAll(resp.Body)
		g.t.Fatalf("%s %s: got status %d with %s, want a stream", method, path, resp.StatusCode, b)
	}
	return r
}

// events follows a task.
func (g *testServer) events(id core.TaskID, query string, headers ...string) *reader {
	g.t.Helper()
	return g.follow(http.MethodGet, "/v1/tasks/"+string(id)+"/events"+query, "", headers...)
}

// leave closes the connection.
func (r *reader) leave() {
	r.cancel()
	r.resp.Body.Close()
}

// next returns the next server-sent event or comment; false at the end.
func (r *reader) next() (m message, ok bool) {
	r.t.Helper()
	for {
		line, err := r.lines.ReadString('\n')
		if err == io.EOF && line == "" {
			return m, false
		}
		if err != nil {
			r.t.Fatalf("reading events: got %v, want a whole line", err)
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case line == "\n" && (m.comment || m.event != ""):
			if !m.comment && !r.validated[m.event] {
				r.validated[m.event] = true
				documented(r.t, map[string]string{"gap": "Gap", "shutdown": "Shutdown", "error": "Problem"}[m.event], "Event", m.data)
			}
			return m, true
		case line == "\n" && m.id != "": // an id alone begins a stream of all tasks
			return m, true
		case line == "\n":
			r.t.Fatalf("got an empty event, want none")
		case name == "":
			m.comment = true
		case name == "id":
			m.id = value
		case name == "event":
			m.event = value
		case name == "data":
			m.data = []byte(value)
		default:
			r.t.Fatalf("got line %q, want an event", line)
		}
	}
}

// nextEvent returns the next event of a task.
func (r *reader) nextEvent() (core.Event, bool) {
	r.t.Helper()
	m, ok := r.next()
	for ok && m.comment {
		m, ok = r.next()
	}
	if !ok {
		return core.Event{}, false
	}
	var e core.Event
	if err := json.Unmarshal(m.data, &e); err != nil {
		r.t.Fatalf("decoding %s: got %v, want an event", m.data, err)
	}
	if e.Body.Kind().String() != m.event {
		r.t.Errorf("got event %q with kind %s, want the same", m.event, e.Body.Kind())
	}
	if m.id != "" && m.id != e.Cursor().String() {
		r.t.Errorf("got id %q, want the cursor %s", m.id, e.Cursor())
	}
	return e, true
}

// until reads up to an event of the kind, and returns all events read.
func (r *reader) until(kind core.Kind) []core.Event {
	r.t.Helper()
	var all []core.Event
	for {
		e, ok := r.nextEvent()
		if !ok {
			r.t.Fatalf("got the end of the stream after %v, want %s", kinds(all), kind)
		}
		if all = append(all, e); e.Body.Kind() == kind {
			return all
		}
	}
}

// rest reads to the end of the stream.
func (r *reader) rest() []core.Event {
	r.t.Helper()
	var all []core.Event
	for {
		e, ok := r.nextEvent()
		if !ok {
			return all
		}
		all = append(all, e)
	}
}

// line is a JSON line.
type line struct {
	ID       string
	Cursor   string
	Task     core.TaskID
	Gap      json.RawMessage
	Shutdown json.RawMessage
	core.Event
}

// nextLine reads a JSON line; false at the end.
func (r *reader) nextLine() (l line, ok bool) {
	r.t.Helper()
	text, err := r.lines.ReadBytes('\n')
	if err == io.EOF && len(text) == 0 {
		return l, false
	}
	if err != nil {
		r.t.Fatalf("reading lines: got %v, want a whole line", err)
	}
	var in struct {
		ID            string
		Kind, Cursor  string
		Task          core.TaskID
		Gap, Shutdown json.RawMessage
	}
	if err := json.Unmarshal(text, &in); err != nil {
		r.t.Fatal(err)
	}
	if !r.validated[in.Kind] {
		r.validated[in.Kind] = true
		documented(r.t, "Line", "", bytes.TrimSpace(text))
	}
	l.ID, l.Cursor, l.Task, l.Gap, l.Shutdown = in.ID, in.Cursor, in.Task, in.Gap, in.Shutdown
	if l.Cursor != "" {
		if err := json.Unmarshal(text, &l.Event); err != nil {
			r.t.Fatal(err)
		}
	}
	return l, true
}

func kinds(events []core.Event) string {
	var ks []string
	for _, e := range events {
		ks = append(ks, e.Body.Kind().String())
	}
	return strings.Join(ks, " ")
}
