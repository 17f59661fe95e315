package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"os/exec"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// servedHub is a hub in a process of its own, with a client.
type servedHub struct {
	*client.Client
	grpc    string
	cmd     *exec.Cmd
	log     *output       // on stderr
	logDone chan struct{} // closed once stderr has ended
}

// serveHub starts a hub that keeps its journal in dir and returns once it is ready. It is killed
// when the test ends.
func serveHub(t *testing.T, dir, sync string) *servedHub {
	t.Helper()
	return serveHubCmd(t, program(t, "serve", "--data-dir", dir, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json"), sync)
}

func serveHubCmd(t *testing.T, cmd *exec.Cmd, sync string) *servedHub {
	t.Helper()
	cmd.Env = append(cmd.Env, "DRAGOMAN_JOURNAL_SYNC="+sync)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	h := &servedHub{cmd: cmd, log: &output{}, logDone: make(chan struct{})}
	t.Cleanup(h.kill)
	for lines := bufio.NewScanner(log); lines.Scan(); {
		_, _ = h.log.Write(append(lines.Bytes(), '\n')) // it never fails
		var printed struct{ Message, GRPC, HTTP string }
		if err := json.Unmarshal(lines.Bytes(), &printed); err != nil {
			t.Fatalf("the hub logged %q, want JSON", lines.Text())
		}
		if printed.Message == "the hub is ready" {
			h.grpc, h.Client = printed.GRPC, &client.Client{URL: "http://" + printed.HTTP, HTTP: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
			go func() {
				defer close(h.logDone)
				for lines.Scan() {
					_, _ = h.log.Write(append(lines.Bytes(), '\n')) // it never fails
				}
			}()
			return h
		}
	}
	t.Fatalf("the hub ended before it was ready: %v", cmd.Wait())
	return nil
}

// kill kills the hub.
func (h *servedHub) kill() {
	_ = h.cmd.Process.Kill() // it may have been killed before
	_ = h.cmd.Wait()
}

// post opens a task with the receipt recorded and decodes the answer.
func (h *servedHub) post(t *testing.T, path, content string, answer any) {
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

// A hub is killed right after a receipt says recorded. After a restart, what was recorded is there.
// Both sync policies promise that; always also survives a power failure, which no test can cause.
func TestAcknowledgedWriteLost(t *testing.T) {
	for _, tt := range []struct{ sync, last string }{
		{"interval", "answer"}, {"interval", "wait"}, {"always", "answer"}, {"always", "wait"},
	} {
		t.Run(tt.sync+" behind "+tt.last, func(t *testing.T) {
			dir := t.TempDir()
			first := serveHub(t, dir, tt.sync)
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
			type answer struct {
				ID      core.TaskID
				State   string
				Receipt core.Receipt
				Answer  struct {
					Text  string
					Fault *core.Fault
				}
			}
			var done, running answer
			if tt.last == "answer" {
				first.post(t, "/v1/tasks", "wait", &running)
			}
			first.post(t, "/v1/tasks?wait=true", "answer", &done)
			if tt.last == "wait" {
				first.post(t, "/v1/tasks", "wait", &running)
			}
			first.kill()
			for name, task := range map[string]answer{"finished": done, "running": running} {
				if task.Receipt.Stage != core.StageRecorded {
					t.Fatalf("the %s task: got the receipt %+v, want recorded", name, task.Receipt)
				}
			}

			second := serveHub(t, dir, tt.sync)
			var again answer
			if err := second.Get(t.Context(), "/v1/tasks/"+string(done.ID), &again); err != nil || again.State != "done" || again.Answer.Text != "the answer" {
				t.Errorf("what was finished: got %+v and %v, want the answer", again, err)
			}
			var conversation struct{ Turns []core.Turn }
			if err := second.Get(t.Context(), "/v1/threads/"+string(done.ID), &conversation); err != nil || len(conversation.Turns) != 2 || conversation.Turns[1].Text != "the answer" {
				t.Errorf("its conversation: got %+v and %v, want the question and the answer", conversation.Turns, err)
			}
			again = answer{}
			err := second.Get(t.Context(), "/v1/tasks/"+string(running.ID), &again)
			if f := again.Answer.Fault; err != nil || again.State != "failed" || f == nil || f.Code != core.CodeUnreachable || !f.Retryable {
				t.Errorf("what was running: got %+v (%v) and %v, want it failed as unreachable, retryable", again, f, err)
			}
			for content, task := range map[string]answer{"answer": done, "wait": running} {
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
