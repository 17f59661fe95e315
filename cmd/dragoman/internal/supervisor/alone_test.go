package supervisor_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

type conn = link.Conn[[]byte, []byte]

// alone is the options of a command that runs without a hub in its process.
func alone(t *testing.T) supervisor.Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l := &supervisor.Launcher{Guard: supervisor.NewGuard(self, guardArgument)}
	t.Cleanup(l.Guard.Close)
	return supervisor.Options{Launcher: l, Log: slog.New(slog.DiscardHandler)}
}

func nativeShell(script string) config.Agent {
	a := shell("kid", script)
	a.Dialect = config.SpeaksNative
	return a
}

// bothEnd is a Bridge that closes both connections and returns how.
func bothEnd(how func(context.Context, conn) error) func(context.Context, conn, conn, core.Card, func()) error {
	return func(ctx context.Context, process, hub conn, _ core.Card, _ func()) error {
		err := how(ctx, process)
		_ = process.Close(link.Reason{})
		_ = hub.Close(link.Reason{})
		return err
	}
}

func connected(ctx context.Context) (conn, error) {
	a, _ := coretest.Pipe[[]byte, []byte](8)
	return a, ctx.Err()
}

func TestANativeCommandThatCannotBeRunFailsWithTheReason(t *testing.T) {
	e := nativeShell("")
	e.Command = []string{"no-such-program"}
	err := supervisor.RunNative(t.Context(), e, alone(t), supervisor.NativeHub{Connect: connected})
	if err == nil || !strings.Contains(err.Error(), "agent kid could not be started") || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got %v, want it to name the agent and the program", err)
	}
}

func TestANativeCommandThatTheHubDoesNotWantFailsAtOnce(t *testing.T) {
	starts := 0
	taken := &agent.HubEnd{Err: errors.New("agent kid already registered"), Final: true}
	err := supervisor.RunNative(t.Context(), nativeShell("cat"), alone(t), supervisor.NativeHub{Connect: connected, Bridge: bothEnd(func(context.Context, conn) error {
		starts++
		return taken
	})})
	if !errors.Is(err, taken) || starts != 1 {
		t.Errorf("got %v after %d starts, want the refusal after one", err, starts)
	}
}

func TestANativeCommandWithoutAHubFails(t *testing.T) {
	none := errors.New("no hub answers")
	err := supervisor.RunNative(t.Context(), nativeShell("cat"), alone(t), supervisor.NativeHub{Connect: func(context.Context) (conn, error) { return nil, none }})
	if !errors.Is(err, none) {
		t.Errorf("got %v, want %v", err, none)
	}
}

func TestANativeCommandEndsItsProcessWhenItIsStopped(t *testing.T) {
	dir := t.TempDir()
	ctx, stop := context.WithCancel(t.Context())
	err := supervisor.RunNative(ctx, nativeShell("echo $$ > "+dir+"/pid; echo ready; cat"), alone(t), supervisor.NativeHub{
		Connect: connected,
		Bridge: bothEnd(func(ctx context.Context, process conn) error {
			if _, err := process.Receive(ctx); err != nil {
				return err
			}
			stop()
			<-ctx.Done()
			return context.Cause(ctx)
		}),
	})
	if err != nil {
		t.Errorf("got %v, want no error", err)
	}
	wantsGone(t, dir+"/pid")
}

// work is what a command does with a task.
type work = func(context.Context, coreagent.Turn) error

func TestACommandJoinsWithItsCardAndDoesTheTasksOfItsHub(t *testing.T) {
	e := shell("kid", "tr a-z A-Z")
	e.Capabilities, e.MaxConcurrent = []string{"shout"}, 3
	var said []core.Event
	err := supervisor.RunAlone(t.Context(), e, alone(t), func(ctx context.Context, card core.Card, do work) error {
		if card.ID != "kid" || card.MaxConcurrent != 3 || !slices.Equal(card.Capabilities, e.Capabilities) || !card.Features.Has(core.FeatureCancellation) {
			t.Errorf("got the card %+v, want that of the settings, with what the agent can do", card)
		}
		return coreagent.NewRemote(coreagent.RemoteTask{
			ID: "t", Request: core.Request{Intent: core.IntentAsk, Content: "hello"},
			Say: func(_ context.Context, b core.Body, f *core.Foreign) error {
				said = append(said, core.Event{Body: b, Foreign: f})
				return nil
			},
		}).Work(ctx, do)
	})
	if got := core.Fold(said).Text; err != nil || got != "HELLO" {
		t.Errorf("got %q and %v, want HELLO", got, err)
	}
}

func TestACommandThatCannotBeRunNeverJoins(t *testing.T) {
	e := shell("kid", "")
	e.Command = []string{"no-such-program"}
	err := supervisor.RunAlone(t.Context(), e, alone(t), func(context.Context, core.Card, work) error {
		t.Error("got it joined, want it to fail before")
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "agent kid could not be started") || !strings.Contains(err.Error(), "no-such-program") {
		t.Errorf("got %v, want it to name the agent and the program", err)
	}
}

func TestACommandEndsWithTheHubThatItCannotJoin(t *testing.T) {
	none := errors.New("no hub answers")
	if err := supervisor.RunAlone(t.Context(), shell("kid", "cat"), alone(t), func(context.Context, core.Card, work) error { return none }); !errors.Is(err, none) {
		t.Errorf("got %v, want %v", err, none)
	}
	ctx, stop := context.WithCancel(t.Context())
	err := supervisor.RunAlone(ctx, shell("kid", "cat"), alone(t), func(ctx context.Context, _ core.Card, _ work) error {
		stop()
		<-ctx.Done()
		return nil
	})
	if err != nil {
		t.Errorf("a command that is stopped: got %v, want no error", err)
	}
}
