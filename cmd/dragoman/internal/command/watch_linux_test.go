package command_test

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// notices puts a program in the place of notify-send, and returns what it is called with, a line each.
func notices(t *testing.T) *bufio.Scanner {
	t.Helper()
	dir := t.TempDir()
	pipe := filepath.Join(dir, "shown")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "notify-send"), []byte("#!/bin/sh\n{ printf '<%s>' \"$@\"; echo; } > "+pipe+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	f, err := os.OpenFile(pipe, os.O_RDWR, 0) // so that it has no end
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return bufio.NewScanner(f)
}

func TestWatchNotifiesWithNothingThatAnAgentSaid(t *testing.T) {
	shown := notices(t)
	h, at := served(t)
	worker := joins(t, h, "worker", "ui")
	asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	t.Cleanup(func() { asker.Close(nil) })
	task, err := asker.Open(core.Request{To: core.ToAgent("worker"), Content: "secret"}, hub.OpenOptions{Attends: true})
	if err != nil {
		t.Fatal(err)
	}
	nextBatch(t, worker, isAssigned)
	name := "--icon=\x1b[2J$(touch x)<b>" + strings.Repeat("long", 50)
	for _, body := range []core.Body{core.ToolCall{ID: "1", Name: name, Input: "secret"}, core.ApprovalRequested{ID: "1", Name: name, Input: "secret"}} {
		if err := worker.Report(task.ID(), body, nil); err != nil {
			t.Fatal(err)
		}
	}
	screen := newScreen(t)
	code := screen.runs(t, "watch", "--notify", "--hub="+at)
	shown.Scan()
	if got, want := shown.Text(), `<--app-name=Dragoman><--><Waits for approval: worker, --icon=\x1b[2J$(touch x)<b>longlonglonglonglonglong…>`; got != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if err := worker.Report(task.ID(), core.Done{Text: "secret"}, nil); err != nil {
		t.Fatal(err)
	}
	shown.Scan()
	if got, want := shown.Text(), "<--app-name=Dragoman><--><Done: worker>"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	screen.await(t, `\x07[^~]*\x07`)
	if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != command.ExitInterrupted {
		t.Errorf("got exit code %d, want %d", got, command.ExitInterrupted)
	}
}
