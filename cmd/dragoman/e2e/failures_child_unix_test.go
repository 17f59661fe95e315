//go:build unix

package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
)

// An agent's process is killed in the middle of an answer. At once it leaves the roster, its task
// fails, and the requester knows.
func TestDeadChildNeverNoticed(t *testing.T) {
	h := newTestHub(t, nil)
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		t.Run(dialect, func(t *testing.T) {
			id, key := "mortal-"+dialect, h.key()
			target := filepath.Join(t.TempDir(), "door")
			if err := syscall.Mkfifo(target, 0o600); err != nil {
				t.Fatal(err)
			}
			// The command waits for the FIFO, which is closed when the test ends.
			keeper, err := os.OpenFile(target, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer keeper.Close()
			agent := program(t, "agent", "--dialect", dialect, "--name", id, "--hub", h.url(),
				"--", "sh", "-c", "printf 'the first half'; read x <"+target)
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			defer agent.Wait()
			defer agent.Process.Kill()
			h.await(t, "joined "+id)
			asker := connectREST(t, h)
			defer asker.leave()
			x := asker.open(query{to: id, content: "wait " + key}, true)
			x.waitText(t, "the first half")

			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			h.await(t, "left "+id)
			got := x.wait(t)
			if got.End != "failed" || got.Code != string(core.CodeUnreachable) || got.Retry != "true" || got.Text != "the first half" {
				t.Errorf("got %+v, want it failed as unreachable, retryable, behind the first half", got)
			}
			if _, here := h.service.Hub().Agent(core.Principal{Operator: true}, core.AgentID(id)); here {
				t.Errorf("got %s in the roster, want it gone", id)
			}
			if got := asker.open(query{to: id, content: "again " + key}, true).wait(t); got.Code != string(core.CodeUnknownAgent) {
				t.Errorf("asking it again: got %+v, want %s", got, core.CodeUnknownAgent)
			}
		})
	}
}
