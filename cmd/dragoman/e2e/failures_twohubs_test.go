package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// externalNATS starts a NATS server that hubs share, and returns its address.
func externalNATS(t *testing.T) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, JetStream: true, JetStreamMaxStore: 64 << 30, StoreDir: t.TempDir(), NoSigs: true, NoLog: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(watchdog) {
		t.Fatal("the NATS server did not start")
	}
	return s.ClientURL()
}

// Two hubs get one NATS server and one name by mistake. The second ends the tasks of the first,
// which stops: it tells nobody of an end as recorded that the journal does not have.
func TestTwoHubsOfOneNameContradictEachOther(t *testing.T) {
	tier.Full(t, "it waits until one hub has taken over from another")
	t.Parallel()
	at := externalNATS(t)
	serve := func() *servedHub {
		t.Helper()
		return serveHubCmd(t, program(t, "serve", "--nats-url", at, "--grpc-addr", "127.0.0.1:0", "--http-addr", "127.0.0.1:0", "--pi-addr", "", "--log-format", "json"), "interval")
	}
	first := serve()
	ctx, leave := context.WithCancel(t.Context())
	in, asked, answer, ended := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		card := core.Card{ID: "keeper", MaxConcurrent: 1}
		ended <- service.Joins()[coven.Name](ctx, client.Hub{GRPC: first.grpc}, card, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
			close(asked)
			select {
			case <-answer:
			case <-ctx.Done():
			}
			return say(core.Text{Text: "the answer"})
		}, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
	}()
	defer func() {
		leave()
		<-ended
	}()
	waitFor := func(what string, is <-chan struct{}) {
		t.Helper()
		select {
		case <-is:
		case <-time.After(watchdog):
			t.Fatalf("%s: not within %s", what, watchdog)
		}
	}
	waitFor("joining", in)
	type state struct {
		ID      core.TaskID
		State   string
		Receipt core.Receipt
	}
	told := make(chan state, 1)
	go func() {
		var s state
		defer func() { told <- s }()
		resp, err := first.Do(context.WithoutCancel(ctx), http.MethodPost, "/v1/tasks?wait=true", "application/json", map[string]string{"to": "keeper", "content": "go on", "receipt": "recorded"})
		if err != nil {
			return // the hub has stopped
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(&s)
	}()
	waitFor("asking", asked)
	var list struct{ Tasks []state }
	if err := first.Get(t.Context(), "/v1/tasks", &list); err != nil || len(list.Tasks) != 1 {
		t.Fatalf("got %+v and %v, want the task", list, err)
	}

	second := serve()
	close(answer)
	defer time.AfterFunc(watchdog, func() { _ = first.cmd.Process.Kill() }).Stop()
	var stopped *exec.ExitError
	if err := first.cmd.Wait(); !errors.As(err, &stopped) || stopped.ExitCode() != 1 {
		t.Errorf("the first hub: got %v, want the exit code 1", err)
	}
	<-first.logDone
	if log := first.log.String(); !strings.Contains(log, "another hub has taken over the journal of hub dragoman (dragoman/2 (host ") {
		t.Errorf("got the log\n%swant it to say who has taken over the journal", log)
	}
	var kept state
	if err := second.Get(t.Context(), "/v1/tasks/"+string(list.Tasks[0].ID), &kept); err != nil || kept.State != "failed" {
		t.Errorf("the second hub: got %+v and %v, want the task failed", kept, err)
	}
	if s := <-told; s.State == "done" && s.Receipt.Stage == core.StageRecorded {
		t.Errorf("the requester was told %+v, while the journal says failed", s)
	}
}
