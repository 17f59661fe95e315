package pi_test

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"weak"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Decoded members share the memory of their frame, so keeping one retains the frame.
func TestARunningCommandDoesNotRetainItsFrame(t *testing.T) {
	junk := `,"unknown":"` + strings.Repeat("x", 1<<20) + `"}`
	for name, tt := range map[string]struct {
		frame string
		begun func(w *heldAgent, dir string)
	}{
		"a prompt":             {`{"id":"1","type":"prompt","sessionId":"s","message":"long"` + junk, func(w *heldAgent, _ string) { <-w.tasks }},
		"bash":                 {`{"id":"1","type":"bash","sessionId":"s","command":"echo $$ > shell; sleep 1000"` + junk, func(_ *heldAgent, dir string) { pidIn(t, filepath.Join(dir, "shell")) }},
		"the twin of a prompt": {`{"id":"2","idempotencyKey":"k","type":"prompt","sessionId":"s","message":"long"` + junk, func(w *heldAgent, _ string) { <-w.tasks }},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHeldAgent()
			shell := newShell(t, pi.Options{})
			joinAgent(t, shell.hub, core.Card{ID: "x"}, w.work)
			hubs, clients := coretest.Pipe[[]byte, []byte](8)
			received := &receipts{Conn: hubs}
			c := dialOver(t, shell.server, pi.ConnOptions{}, received, clients)
			c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"x"}`)
			received.all = nil
			c.send(tt.frame)
			tt.begun(w, shell.dir)
			if strings.Contains(tt.frame, "idempotencyKey") {
				c.send(tt.frame)
			}
			c.ok(`{"type":"list_sessions"}`) // its frame replaces the one before
			frames := received.all[:len(received.all)-1]
			runtime.GC()
			if len(frames) == 0 {
				t.Error("got no frames received, want those that were sent")
			}
			for i, f := range frames {
				if f.Value() != nil {
					t.Errorf("frame %d: got it retained while the command runs, want it released", i+1)
				}
			}
		})
	}
}

// receipts is a transport that keeps weak pointers to the received frames.
type receipts struct {
	link.Conn[[]byte, []byte]
	all []weak.Pointer[byte]
}

func (r *receipts) Receive(ctx context.Context) ([]byte, error) {
	m, err := r.Conn.Receive(ctx)
	if err == nil {
		r.all = append(r.all, weak.Make(&m[0]))
	}
	return m, err
}
