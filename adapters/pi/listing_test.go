package pi

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// headOnly is a session file in which nothing has been said.
const headOnly = `{"type":"session","version":3,"id":"a","timestamp":"2026-01-01T00:00:00.000Z","cwd":"/"}` + "\n"

func TestOfTooManyFilesTheLatestAreListed(t *testing.T) {
	dir := t.TempDir()
	const more = 3
	for i := range listMost + more { // by name the oldest come first, as the real program names them
		path := filepath.Join(dir, fmt.Sprintf("%05d.jsonl", i))
		if err := os.WriteFile(path, []byte(headOnly), 0o600); err != nil {
			t.Fatal(err)
		}
		at := someTime.Add(time.Duration(i) * time.Second)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	_, s := newStage(t, Options{SessionDir: dir})
	list := s.storedFiles(t.Context(), "")
	if got, want := len(list), listMost; got != want {
		t.Fatalf("got %d files, want %d", got, want)
	}
	if got, want := list[0].SessionID, fmt.Sprintf("%05d", listMost+more-1); got != want {
		t.Errorf("first: got %s, want the latest, %s", got, want)
	}
	if got, want := list[listMost-1].SessionID, fmt.Sprintf("%05d", more); got != want {
		t.Errorf("last: got %s, want %s: the oldest are left out", got, want)
	}
}

func TestAListThatTakesLongHoldsUpNothingElse(t *testing.T) {
	h, s := newStage(t, Options{SessionDir: t.TempDir()})
	join(t, h, core.Card{ID: "x"}, echo)
	c := dial(t, s, ConnOptions{})
	c.open("s", "x")
	release := make(chan struct{})
	s.mu.Lock()
	s.lists.add(func(context.Context) { <-release }) // a disk that takes its time
	s.mu.Unlock()
	const lists = 2 * workers
	for i := range lists {
		c.send(fmt.Sprintf(`{"id":"l%d","type":"list_stored_sessions"}`, i))
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	settled(s)
	path := fileOf(c, "s")
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	c.ok(`{"type":"get_tree","sessionId":"t"}`)
	if n := c.count(`"type":"response","command":"list_stored_sessions"`); n != 0 {
		t.Errorf("got %d lists before the disk was there, want none", n)
	}
	close(release)
	for i := range lists {
		c.until(fmt.Sprintf(`"id":"l%d","type":"response"`, i), path)
	}
}

func TestADirectoryThatIsSlowToAnswerHoldsUpNothingElse(t *testing.T) {
	_, s := newStage(t, Options{})
	c := dial(t, s, ConnOptions{})
	release := make(chan struct{})
	s.mu.Lock()
	for range workers {
		s.jobs.add(func(context.Context) { <-release }) // a disk that takes its time
	}
	s.mu.Unlock()
	c.send(`{"id":"slow","type":"create_session","sessionId":"s","cwd":"/"}`)
	c.ok(`{"type":"create_session","sessionId":"t"}`)
	if f := c.ok(`{"type":"list_sessions"}`); has(f, `"sessionId":"s"`) {
		t.Errorf("got %s before the disk was there, want no session s", f.Data)
	}
	close(release)
	c.until(`"id":"slow","type":"response"`, `"success":true`, `"sessionVersion":0`)
}

func TestFilesOfAPrincipalAreNobodyElsesFromWhicheverRoot(t *testing.T) {
	above := resolve(t.TempDir())
	h, s := newStage(t, Options{SessionDir: filepath.Join(above, "sessions"), SessionRoots: []string{above}})
	join(t, h, core.Card{ID: "x"}, echo)
	ann := dial(t, s, ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.open("s", "x")
	ann.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	settled(s)
	path := fileOf(ann, "s")
	anybody := dial(t, s, ConnOptions{})
	anybody.fails(`{"type":"load_session","sessionPath":"`+path+`"}`, notAllowed)
	if f := anybody.ok(`{"type":"list_stored_sessions"}`); string(f.Data) != `{"sessions":[]}` {
		t.Errorf("got %s listed for somebody else, want nothing", f.Data)
	}
}
