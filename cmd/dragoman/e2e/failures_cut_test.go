package e2e

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
)

// An answer whose stream is cut, or ends in order but without an end event, is a failure for the
// requester, and what came before is shown.
func TestTruncatedStreamLooksComplete(t *testing.T) {
	for name, truncate := range map[string]func(t *testing.T) (hub, content string, cut func(out *output)){
		"cut": func(t *testing.T) (string, string, func(*output)) {
			h := newTestHub(t, nil)
			h.startAgent(t, parallax.Dialect, "actor", 1)
			key := h.key()
			line := newProxy(t, h.service.Addresses().HTTP)
			t.Cleanup(func() { h.signal(key+" released", nil) })
			return "http://" + line.addr(), "hang " + key, func(out *output) {
				if _, err := out.wait(t.Context(), "half"); err != nil {
					t.Fatal(err)
				}
				line.cut()
			}
		},
		"ended in good order": func(t *testing.T) (string, string, func(*output)) {
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
			return hub.URL, "anything", func(*output) {}
		},
	} {
		t.Run(name, func(t *testing.T) {
			hub, content, cut := truncate(t)
			out, stderr, code := startAsk(t, hub, "actor", content)
			cut(out)
			if got := <-code; got != command.ExitFailed {
				t.Errorf("got the exit code %d, want %d", got, command.ExitFailed)
			}
			if got := strings.TrimSpace(out.String()); got != strings.TrimSpace(firstHalf) {
				t.Errorf("got %q, want what came before the cut: %q", got, firstHalf)
			}
			if got := stderr.String(); !strings.Contains(got, "cut off") || !regexp.MustCompile(`'dragoman tail [^ ']+' shows`).MatchString(got) {
				t.Errorf("got %q, want that the answer is incomplete, and how to read the rest", got)
			}
		})
	}
}
