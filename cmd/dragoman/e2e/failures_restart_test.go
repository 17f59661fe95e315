package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// An agent's process is killed in the middle of an answer: at once it is in the
// roster no more, its task has failed, and whoever asked knows.
func TestDeadChildNeverNoticed(t *testing.T) {
	s := newStage(t, nil)
	for _, dialect := range []string{coven.Name, parallax.Dialect, acp.Dialect} {
		t.Run(dialect, func(t *testing.T) {
			id, key := "mortal-"+dialect, s.key()
			door := filepath.Join(t.TempDir(), "door")
			if err := syscall.Mkfifo(door, 0o600); err != nil {
				t.Fatal(err)
			}
			// The command waits at the door, which opens when the test ends.
			keeper, err := os.OpenFile(door, os.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer keeper.Close()
			agent := program(t, "agent", "--dialect", dialect, "--name", id, "--hub", "http://"+s.service.Addresses().HTTP,
				"--", "sh", "-c", "printf 'the first half'; read x <"+door)
			if err := agent.Start(); err != nil {
				t.Fatal(err)
			}
			defer agent.Wait()
			defer agent.Process.Kill()
			s.await(t, "joined "+id)
			asker := connectREST(t, s)
			defer asker.leave()
			x := asker.open(inquiry{to: id, content: "wait " + key}, true)
			x.hear(t, "the first half")

			if err := agent.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			s.await(t, "left "+id)
			got := x.outcome(t)
			if got.End != "failed" || got.Code != string(core.CodeUnreachable) || got.Retry != "true" || got.Text != "the first half" {
				t.Errorf("got %+v, want it failed as unreachable, retryable, behind the first half", got)
			}
			if _, here := s.service.Hub().Agent(core.AgentID(id)); here {
				t.Errorf("got %s in the roster, want it gone", id)
			}
			if got := asker.open(inquiry{to: id, content: "again " + key}, true).outcome(t); got.Code != string(core.CodeUnknownAgent) {
				t.Errorf("asking it again: got %+v, want %s", got, core.CodeUnknownAgent)
			}
		})
	}
}

// served is a hub in a process of its own.
type served struct {
	*client.Client
	grpc string
	cmd  *exec.Cmd
	said *earshot      // on stderr, once it was ready
	mute chan struct{} // closed once stderr has ended
}

// serveProgram starts a hub that keeps its journal in dir, and returns once it is
// ready. It is killed when the test ends, if not before.
func serveProgram(t *testing.T, dir, sync string) *served {
	t.Helper()
	return serveAs(t, program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json"), sync)
}

func serveAs(t *testing.T, cmd *exec.Cmd, sync string) *served {
	t.Helper()
	cmd.Env = append(cmd.Env, "DRAGOMAN_JOURNAL_SYNC="+sync)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &served{cmd: cmd, said: &earshot{}, mute: make(chan struct{})}
	t.Cleanup(h.kill)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		var said struct{ Message, GRPC, HTTP string }
		if err := json.Unmarshal(lines.Bytes(), &said); err != nil {
			t.Fatalf("the hub said %q, want JSON", lines.Text())
		}
		if said.Message == "the hub is ready" {
			h.grpc, h.Client = said.GRPC, &client.Client{URL: "http://" + said.HTTP, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
			go func() {
				defer close(h.mute)
				for lines.Scan() {
					_, _ = h.said.Write(append(lines.Bytes(), '\n')) // it takes everything
				}
			}()
			return h
		}
	}
	t.Fatalf("the hub ended before it was ready: %v", cmd.Wait())
	return nil
}

// kill ends the hub as the kernel does it: without a word.
func (h *served) kill() {
	_ = h.cmd.Process.Kill() // it may have been killed before
	_ = h.cmd.Wait()
}

// post opens a task whose receipt says recorded, and returns what the hub answered.
func (h *served) post(t *testing.T, path, content string, answer any) {
	t.Helper()
	resp, err := h.Do(t.Context(), http.MethodPost, path, "application/json", map[string]string{"to": "keeper", "content": content, "receipt": "recorded"})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(answer); err != nil {
		t.Fatal(err)
	}
}

// A hub is killed right behind a receipt that says recorded: whoever starts it again
// finds what was recorded. That is what the stage says of either sync policy; what
// always adds to it is the loss of power, which no test can bring about.
func TestAcknowledgedWriteLost(t *testing.T) {
	for _, tt := range []struct{ sync, last string }{
		{"interval", "answer"}, {"interval", "wait"}, {"always", "answer"}, {"always", "wait"},
	} {
		t.Run(tt.sync+" behind "+tt.last, func(t *testing.T) {
			dir := t.TempDir()
			first := serveProgram(t, dir, tt.sync)
			ctx, leave := context.WithCancel(t.Context())
			in, ended := make(chan struct{}), make(chan error, 1)
			go func() {
				card := core.Card{ID: "keeper", MaxConcurrent: 2}
				ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: first.grpc}, card, func(ctx context.Context, r core.Request, say func(core.Body) error) error {
					if r.Content == "answer" {
						return say(core.Text{Text: "the answer"})
					}
					<-ctx.Done()
					return ctx.Err()
				}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
			}()
			defer func() {
				leave()
				<-ended
			}()
			select {
			case <-in:
			case <-time.After(watchdog):
				t.Fatal("the agent did not join")
			}
			type told struct {
				ID      core.TaskID
				State   string
				Receipt core.Receipt
				Answer  struct {
					Text  string
					Fault *core.Fault
				}
			}
			var done, running told
			if tt.last == "answer" {
				first.post(t, "/v1/tasks", "wait", &running)
			}
			first.post(t, "/v1/tasks?wait=true", "answer", &done)
			if tt.last == "wait" {
				first.post(t, "/v1/tasks", "wait", &running)
			}
			first.kill()
			for name, task := range map[string]told{"finished": done, "running": running} {
				if task.Receipt.Stage != core.StageRecorded {
					t.Fatalf("the %s task: got the receipt %+v, want recorded", name, task.Receipt)
				}
			}

			second := serveProgram(t, dir, tt.sync)
			var again told
			if err := second.Get(t.Context(), "/v1/tasks/"+string(done.ID), &again); err != nil || again.State != "done" || again.Answer.Text != "the answer" {
				t.Errorf("what was finished: got %+v and %v, want the answer", again, err)
			}
			again = told{}
			err := second.Get(t.Context(), "/v1/tasks/"+string(running.ID), &again)
			if f := again.Answer.Fault; err != nil || again.State != "failed" || f == nil || f.Code != core.CodeUnreachable || !f.Retryable {
				t.Errorf("what was running: got %+v (%v) and %v, want it failed as unreachable, retryable", again, f, err)
			}
			for content, task := range map[string]told{"answer": done, "wait": running} {
				resp, err := second.Do(t.Context(), http.MethodGet, "/v1/tasks/"+string(task.ID)+"/events?follow=false", client.NDJSON, nil)
				if err != nil {
					t.Errorf("the events of %s: got %v, want them", content, err)
					continue
				}
				var seq uint64
				err = client.Follow(resp, func(l client.Line, _ []byte) error {
					if b, ok := l.Body.(core.Opened); ok && b.Request.Content != content {
						t.Errorf("got the request %q, want %q", b.Request.Content, content)
					}
					if l.Seq != seq+1 {
						t.Errorf("the events of %s: got sequence %d behind %d, want no gap", content, l.Seq, seq)
					}
					seq = l.End()
					return nil
				})
				if err != nil || seq < 3 {
					t.Errorf("the events of %s: got %d and %v, want all of them", content, seq, err)
				}
			}
		})
	}
}
