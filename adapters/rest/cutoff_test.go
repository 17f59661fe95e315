package rest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestRefreshKillsTheRun(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asSSE)
	task := a.accept()
	a.report(task, core.Text{Text: "one "})
	seen := r.until(core.KindText)
	r.leave()
	<-g.left
	a.report(task, core.Text{Text: "two "}, core.Text{Text: "three"}, core.Done{})
	rest := g.events(task.ID(), "", "Last-Event-ID: "+seen[len(seen)-1].Cursor().String()).rest()
	if got, want := core.Fold(append(seen, rest...)).Text, "one two three"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if d := g.document(task.ID()); d.State != "done" {
		t.Errorf("got state %s, want done", d.State)
	}
}

func TestATaskThatIsNotKeptIsCancelledWhenItsReaderLeaves(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	for _, form := range []string{asSSE, asLines} {
		r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi","keep":false}`, form)
		task := a.accept()
		a.report(task, core.Text{Text: "one "})
		r.leave()
		_, e := a.next(core.KindCancelRequested)
		if got := e.Body.(core.CancelRequested); got.By != operator || got.Reason != "the requester left" {
			t.Errorf("got %+v, want a cancel by %s because the requester left", got, operator)
		}
		a.report(task, core.Cancelled{Reason: "on request"})
		if d := g.document(task.ID()); d.State != "cancelled" {
			t.Errorf("got state %s, want cancelled", d.State)
		}
	}
}

func TestATaskThatIsNotKeptIsCancelledWhenItsWaitingClientLeaves(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	for _, keep := range []bool{false, true} {
		ctx, cancel := context.WithCancel(context.Background())
		req, _ := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/tasks?wait=true", strings.NewReader(fmt.Sprintf(`{"to":"a","content":"hi","keep":%t}`, keep)))
		gone := make(chan error, 1)
		go func() {
			resp, err := http.DefaultTransport.RoundTrip(req)
			if err == nil {
				resp.Body.Close()
			}
			gone <- err
		}()
		task := a.accept()
		cancel()
		if err := <-gone; err == nil {
			t.Error("got an answer, want none")
		}
		<-g.left
		if keep {
			a.report(task, core.Done{})
		} else {
			a.next(core.KindCancelRequested)
			a.report(task, core.Cancelled{})
		}
		if got, want := g.document(task.ID()).State, map[bool]string{true: "done", false: "cancelled"}[keep]; got != want {
			t.Errorf("keep=%t: got %s, want %s", keep, got, want)
		}
	}
	if n := g.hub.Counters()["rest.refused.cancelled"]; n != 0 {
		t.Errorf("got %d refusals, want none: the client had left", n)
	}
}

func TestTruncatedStreamLooksComplete(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	a := g.agent("a")
	r := g.follow(http.MethodPost, "/v1/tasks", `{"to":"a","content":"hi"}`, asSSE)
	a.report(a.accept(), core.Text{Text: "half an ans"})
	r.until(core.KindText)
	a.s.Close(nil)
	rest := r.rest()
	if got := kinds(rest); got != "failed" {
		t.Fatalf("got %s, want failed", got)
	}
	if f := rest[0].Body.(core.Failed).Fault; f.Code != core.CodeUnreachable || !f.Retryable {
		t.Errorf("got %+v, want unreachable, retryable", f)
	}
}

// TestOneSlowReader checks that a client that reads nothing is cut off, does not delay
// others, and resumes with exactly what it missed.
func TestOneSlowReader(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	strict := g.serve(rest.Options{WriteTimeout: 50 * time.Millisecond})
	a := g.agent("a")
	id := g.opened(`{"to":"a","content":"hi"}`)
	task := a.accept()
	healthy := g.events(id, "")

	conn, err := net.Dial("tcp", strings.TrimPrefix(strict.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/tasks/%s/events HTTP/1.1\r\nHost: x\r\n\r\n", id)

	var whole strings.Builder
	for i := range 400 {
		piece := fmt.Sprintf("%04d", i) + strings.Repeat("x", 4<<10)
		whole.WriteString(piece)
		a.report(task, core.Text{Text: piece})
	}
	a.report(task, core.Done{})
	if got := core.Fold(healthy.rest()).Text; got != whole.String() {
		t.Errorf("the other reader: got %d bytes, want %d", len(got), whole.Len())
	}
	if got := <-strict.left; !strings.HasSuffix(got, "/events") {
		t.Errorf("got %s ended, want the stream", got)
	}
	if n := g.hub.Counters()["rest.cut"]; n != 1 {
		t.Errorf("got %d readers cut off, want 1", n)
	}

	seen := wholeEvents(t, conn)
	if len(seen) == 0 || seen[len(seen)-1].Body.Kind() == core.KindDone {
		t.Fatalf("the slow reader got %d events, want some and not all", len(seen))
	}
	rest := g.events(id, "?from="+seen[len(seen)-1].Cursor().String()).rest()
	if got := core.Fold(append(seen, rest...)).Text; got != whole.String() {
		t.Errorf("the slow reader, after it resumed: got %d bytes, want %d", len(got), whole.Len())
	}
}

// wholeEvents reads the events that arrived completely before the connection was cut.
func wholeEvents(t *testing.T, conn net.Conn) []core.Event {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("got %v, want the head of an answer", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil {
		t.Error("got a whole answer, want one that was cut off")
	}
	var all []core.Event
	blocks := bytes.Split(b, []byte("\n\n"))
	for _, block := range blocks[:len(blocks)-1] {
		_, data, _ := bytes.Cut(block, []byte("\ndata: "))
		var e core.Event
		if err := json.Unmarshal(data, &e); err != nil {
			t.Fatalf("decoding an event: %v", err)
		}
		all = append(all, e)
	}
	return all
}
