package e2e

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// earshot is an output that a test listens to.
type earshot struct {
	board
	mu   sync.Mutex
	text bytes.Buffer
}

func (e *earshot) Write(p []byte) (int, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.text.Write(p)
	if strings.Contains(e.text.String(), strings.TrimSpace(firstHalf)) {
		e.post("heard", nil)
	}
	return len(p), nil
}

func (e *earshot) Close() error { return nil }

func (e *earshot) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.text.String()
}

// asks runs dragoman ask and returns what it writes and, once it has ended, its exit
// code.
func asks(t *testing.T, hub, to, content string) (out, complaint *earshot, code <-chan int) {
	out, complaint = &earshot{}, &earshot{}
	ended := make(chan int, 1)
	var life sync.WaitGroup
	life.Go(func() {
		ended <- command.Run(t.Context(), []string{"ask", "--hub", hub, to, content}, command.Streams{In: io.NopCloser(strings.NewReader("")), Out: out, Err: complaint})
	})
	t.Cleanup(life.Wait)
	return out, complaint, ended
}

// An answer whose stream is cut, or ends as if all were well but without its end, is
// a failure for whoever asked, with what came before it shown.
func TestTruncatedStreamLooksComplete(t *testing.T) {
	for name, truncate := range map[string]func(t *testing.T) (hub, content string, cut func(out *earshot)){
		"cut": func(t *testing.T) (string, string, func(*earshot)) {
			s := newStage(t, nil)
			s.cast(t, parallax.Dialect, "actor", 1)
			key := s.key()
			line := lay(t, s.service.Addresses().HTTP)
			t.Cleanup(func() { s.post(key+" released", nil) })
			return "http://" + line.addr(), "hang " + key, func(out *earshot) {
				if _, err := out.wait(t.Context(), "heard"); err != nil {
					t.Fatal(err)
				}
				line.cut()
			}
		},
		"ended in good order": func(t *testing.T) (string, string, func(*earshot)) {
			var events []byte
			for i, b := range []core.Body{core.Opened{Task: "t", Request: core.Request{To: core.ToAgent("actor")}}, core.Assigned{Agent: "actor", Attempt: 1}, core.Text{Text: firstHalf}} {
				e := core.Event{Seq: uint64(i + 1), Epoch: 1, At: time.Now(), Body: b}
				events = append(append(events, plainJSON(e)...), '\n')
			}
			hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", client.NDJSON)
				w.WriteHeader(http.StatusOK)
				_, _ = w.Write(events)
			}))
			t.Cleanup(hub.Close)
			return hub.URL, "anything", func(*earshot) {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, content, cut := truncate(t)
			out, complaint, code := asks(t, hub, "actor", content)
			cut(out)
			if got := <-code; got != command.ExitFailed {
				t.Errorf("got the exit code %d, want %d", got, command.ExitFailed)
			}
			if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(firstHalf) {
				t.Errorf("got %q, want what came before the cut: %q", got, firstHalf)
			}
			if got := complaint.String(); !strings.Contains(got, "cut off") || !regexp.MustCompile(`'dragoman tail [^ ']+' shows`).MatchString(got) {
				t.Errorf("got %q, want to be told that the answer is not whole, and how to hear the rest", got)
			}
		})
	}
}
