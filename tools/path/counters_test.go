package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// talk is a file of the checkout: a function that asks another one, and the loop of a connection.
const talk = `package core

func ask(n int) int {
	return answer(n) + 1
}

func (c *conn[T]) loop() {
	for range c.questions {
		func() { ask(1) }()
	}
}

func answer(n int) int { return n }

func unasked() {}
`

// lock is the file of package sync with a lock.
const lock = `package sync

func (m *Mutex) Lock() { m.mu.Lock() }

func (m *Mutex) Unlock() { m.mu.Unlock() }
`

// counted returns counters of talk after n questions, each of which needs two answers.
func counted(t *testing.T, n string, twice string) counters {
	t.Helper()
	const file = "github.com/dragoman-hub/dragoman/core/talk.go:"
	c, err := parse(strings.NewReader(strings.Join([]string{
		"mode: atomic",
		file + "3.21,5.2 1 " + n,
		file + "7.26,8.27 1 1",
		file + "8.27,9.10 1 " + n,
		file + "9.10,9.19 1 " + n,
		file + "13.24,13.36 1 " + twice,
		file + "15.16,15.17 0 3",
		"sync/mutex.go:3.24,3.39 1 " + twice,
		"sync/mutex.go:5.26,5.43 1 " + twice,
	}, "\n")))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestTheRouteIsWhatQuestionsRanMore(t *testing.T) {
	root := t.TempDir()
	for file, text := range map[string]string{"core/talk.go": talk, "go/src/sync/mutex.go": lock} {
		if err := os.MkdirAll(filepath.Join(root, filepath.Dir(file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r, err := follow("pi", root, filepath.Join(root, "go"), counted(t, "25", "50").less(counted(t, "5", "10")), 20)
	if err != nil {
		t.Fatal(err)
	}
	want := []function{{"core/talk.go", "answer", 2}, {"core/talk.go", "ask", 1}, {"core/talk.go", "conn.loop", 0}}
	if !slices.Equal(r.functions, want) {
		t.Errorf("got the functions %v, want %v", r.functions, want)
	}
	if r.files() != 1 || r.packages() != 1 || r.statements != 5 || r.calls() != 3 {
		t.Errorf("got %d files, %d packages, %v statements and %v calls, want 1, 1, 5 and 3", r.files(), r.packages(), r.statements, r.calls())
	}
	if r.locks != 2 {
		t.Errorf("got %v locks, want 2", r.locks)
	}
}

func TestCountersThatCannotBeReadAreAnError(t *testing.T) {
	for _, text := range []string{"", "core/talk.go:3.21,5.2 1 1\n", "mode: atomic\ncore/talk.go:3.21 1\n"} {
		if c, err := parse(strings.NewReader(text)); err == nil {
			t.Errorf("parse %q: got %v, want an error", text, c)
		}
	}
}
