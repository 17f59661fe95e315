package agent_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// answerOf runs a command as a handler and returns its answer.
func answerOf(ctx context.Context, r core.Request, argv ...string) (string, error) {
	var text strings.Builder
	err := agent.Handler(agent.ProgramOf(argv), io.Discard, slog.New(slog.DiscardHandler))(ctx, r, func(b core.Body) error {
		text.WriteString(b.(core.Text).Text)
		return nil
	})
	return text.String(), err
}

func TestTheAnswerIsTheOutputOfTheCommand(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{Content: "hello"}, "tr", "a-z", "A-Z")
	if err != nil || got != "HELLO" {
		t.Errorf("got %q and %v, want HELLO", got, err)
	}
}

func TestAFailedCommandReportsTheEndOfItsStderr(t *testing.T) {
	_, err := answerOf(t.Context(), core.Request{}, "sh", "-c", "echo the disk is full >&2; exit 3")
	f := core.AsFault(err)
	if f == nil || f.Code != core.CodeInternal || !strings.Contains(f.Message, "the disk is full") || !strings.Contains(f.Message, "exit status 3") {
		t.Errorf("got %v, want the status and the end of stderr", err)
	}
	_, err = answerOf(t.Context(), core.Request{}, "sh", "-c", "kill -9 $$")
	if f := core.AsFault(err); f == nil || f.Message != "sh: signal: killed" {
		t.Errorf("got %v, want the signal alone", err)
	}
	if _, err = answerOf(t.Context(), core.Request{}, "no-such-command-here"); err == nil || !strings.Contains(err.Error(), "no-such-command-here") {
		t.Errorf("got %v, want the name of the missing command", err)
	}
}

func TestAProcessLeftInTheBackgroundFailsNoAnswer(t *testing.T) {
	tier.Full(t, "the output of a command is waited for as long as it is in reality")
	for script, want := range map[string]string{"printf whole; sleep 600 &": "", "printf whole; sleep 600 & exit 3": "exit status 3"} {
		got, err := answerOf(t.Context(), core.Request{Content: strings.Repeat("x", 1<<20)}, "sh", "-c", script)
		if got != "whole" || (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %q and %v, want the output and what the exit status says: %q", script, got, err, want)
		}
	}
}

func TestAFailedCommandIsLoggedAndItsStderrShownOnce(t *testing.T) {
	var terminal bytes.Buffer
	log := slog.New(slog.NewTextHandler(&terminal, nil))
	err := agent.Handler(agent.ProgramOf([]string{"sh", "-c", "echo the disk is full >&2; exit 3"}), &terminal, log)(t.Context(), core.Request{}, nil)
	output := terminal.String()
	if err == nil || !strings.Contains(output, `"the command failed" command=sh error="exit status 3"`) || strings.Count(output, "the disk is full") != 1 {
		t.Errorf("got %v and %q, want the status in the log and its stderr once", err, output)
	}
}

func TestACancelledCommandDiesWithItsChildren(t *testing.T) {
	// The grandchild holds a pipe open until it has exited.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fifo := filepath.Join(t.TempDir(), "alive")
	script := "sleep 600 & echo $! > " + fifo + "; echo started; wait"
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- agent.Handler(agent.ProgramOf([]string{"sh", "-c", script}), w, slog.New(slog.DiscardHandler))(ctx, core.Request{}, func(core.Body) error {
			started <- struct{}{}
			return nil
		})
		w.Close()
	}()
	<-started
	cancel()
	select {
	case err := <-done:
		if err == nil {
			t.Error("got no error, want the reason of the cancel")
		}
	case <-time.After(time.Minute):
		t.Fatal("the command still runs a minute after it was cancelled")
	}
	// The end of the pipe is the end of the grandchild.
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("waiting for the grandchild: got %v, want the end of the pipe", err)
	}
}

func TestTheRestOfARequestIsInAFile(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{Content: "x", Data: json.RawMessage(`{"n":1}`)}, "sh", "-c", `cat "$DRAGOMAN_REQUEST"`)
	if err != nil || !strings.Contains(got, `"data":{"n":1}`) {
		t.Errorf("got %q and %v, want the data in it", got, err)
	}
	if got, err := answerOf(t.Context(), core.Request{Content: "x"}, "sh", "-c", `echo "[$DRAGOMAN_REQUEST]"`); err != nil || got != "[]\n" {
		t.Errorf("with content alone: got %q and %v, want no file", got, err)
	}
}

func TestANoticeIsPassedAsTextAndAsAFile(t *testing.T) {
	notice := core.Request{Intent: core.IntentNotify, Notice: &core.Notice{Topic: "door.open", Data: json.RawMessage(`{"who":"me"}`)}}
	if got, err := answerOf(t.Context(), notice, "cat"); err != nil || got != "door.open {\"who\":\"me\"}\n" {
		t.Errorf("got %q and %v on stdin, want its topic and its data", got, err)
	}
	var kept core.Request
	got, err := answerOf(t.Context(), notice, "sh", "-c", "cat $DRAGOMAN_REQUEST")
	if err == nil {
		err = json.Unmarshal([]byte(got), &kept)
	}
	if err != nil || kept.Notice == nil || kept.Notice.Topic != "door.open" {
		t.Errorf("got the file %q and %v, want the notice in it", got, err)
	}
}

func TestInvalidUTF8InTheOutputIsReplaced(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{}, "printf", `a\377b`)
	if err != nil || got != "a\ufffdb" {
		t.Errorf("got %q and %v, want the invalid byte replaced", got, err)
	}
}
