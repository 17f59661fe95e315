package agent

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
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

// answerOf runs a command as a handler and returns the text that it said.
func answerOf(ctx context.Context, r core.Request, argv ...string) (string, error) {
	var text strings.Builder
	err := Handler(argv, io.Discard, slog.New(slog.DiscardHandler))(ctx, r, func(b core.Body) error {
		text.WriteString(b.(core.Text).Text)
		return nil
	})
	return text.String(), err
}

func TestACommandAnswersWhatItWrites(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{Content: "hello"}, "tr", "a-z", "A-Z")
	if err != nil || got != "HELLO" {
		t.Errorf("got %q and %v, want HELLO", got, err)
	}
}

func TestACommandThatFailsTellsTheEndOfItsStderr(t *testing.T) {
	_, err := answerOf(t.Context(), core.Request{}, "sh", "-c", "echo the disk is full >&2; exit 3")
	f := core.AsFault(err)
	if f == nil || f.Code != core.CodeInternal || !strings.Contains(f.Message, "the disk is full") || !strings.Contains(f.Message, "exit status 3") {
		t.Errorf("got %v, want the status and the end of stderr", err)
	}
	_, err = answerOf(t.Context(), core.Request{}, "sh", "-c", "kill -9 $$")
	if f := core.AsFault(err); f == nil || f.Message != "sh: signal: killed" {
		t.Errorf("got %v, want how it died and nothing behind it", err)
	}
	if _, err = answerOf(t.Context(), core.Request{}, "no-such-command-here"); err == nil || !strings.Contains(err.Error(), "no-such-command-here") {
		t.Errorf("got %v, want the name of the command that there is not", err)
	}
}

func TestACommandThatFailsIsSaidSoWhereTheAgentRunsAndWhyOnlyOnce(t *testing.T) {
	var terminal bytes.Buffer
	log := slog.New(slog.NewTextHandler(&terminal, nil))
	err := Handler([]string{"sh", "-c", "echo the disk is full >&2; exit 3"}, &terminal, log)(t.Context(), core.Request{}, nil)
	said := terminal.String()
	if err == nil || !strings.Contains(said, `"the command failed" command=sh error="exit status 3"`) || strings.Count(said, "the disk is full") != 1 {
		t.Errorf("got %v and %q, want the status in the log and its stderr once", err, said)
	}
}

func TestACancelledCommandDiesWithAllThatItStarted(t *testing.T) {
	// The child of the child tells on a pipe of its own when it is gone.
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fifo := filepath.Join(t.TempDir(), "alive")
	script := "sleep 600 & echo $! > " + fifo + "; echo started; wait"
	ctx, cancel := context.WithCancel(t.Context())
	said := make(chan struct{}, 1)
	done := make(chan error, 1)
	go func() {
		done <- Handler([]string{"sh", "-c", script}, w, slog.New(slog.DiscardHandler))(ctx, core.Request{}, func(core.Body) error {
			said <- struct{}{}
			return nil
		})
		w.Close()
	}()
	<-said
	cancel()
	select {
	case err := <-done:
		if err == nil {
			t.Error("got no error, want the reason of the cancel")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("the command goes on 20 s after it was cancelled, want it gone")
	}
	// The grandchild holds stderr as well: its end is the end of the pipe.
	if _, err := io.ReadAll(r); err != nil {
		t.Errorf("waiting for the grandchild: got %v, want the end of what it held", err)
	}
}

func TestWhatARequestHasBesideItsContentStandsInAFile(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{Content: "x", Data: json.RawMessage(`{"n":1}`)}, "sh", "-c", `cat "$DRAGOMAN_REQUEST"`)
	if err != nil || !strings.Contains(got, `"data":{"n":1}`) {
		t.Errorf("got %q and %v, want the data in it", got, err)
	}
	if got, err := answerOf(t.Context(), core.Request{Content: "x"}, "sh", "-c", `echo "[$DRAGOMAN_REQUEST]"`); err != nil || got != "[]\n" {
		t.Errorf("with content alone: got %q and %v, want no file", got, err)
	}
}

func TestANoticeIsGivenToACommandInWordsAndWhole(t *testing.T) {
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

func TestNoCharacterIsCutInTwoHoweverTheOutputIsCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		var got strings.Builder
		s := &textWriter{say: func(b core.Body) error {
			text := b.(core.Text).Text
			if !utf8.ValidString(text) {
				t.Fatalf("got %q, want whole characters", text)
			}
			got.WriteString(text)
			return nil
		}}
		for rest := []byte(want); len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "cut")
			if _, err := s.Write(rest[:n]); err != nil {
				t.Fatal(err)
			}
			rest = rest[n:]
		}
		if err := s.flush(); err != nil {
			t.Fatal(err)
		}
		if got.String() != want {
			t.Fatalf("got %q, want %q", got.String(), want)
		}
	})
}

func TestOutputThatIsNoTextIsMadeText(t *testing.T) {
	got, err := answerOf(t.Context(), core.Request{}, "printf", `a\377b`)
	if err != nil || got != "a\ufffdb" {
		t.Errorf("got %q and %v, want the odd byte replaced", got, err)
	}
}
