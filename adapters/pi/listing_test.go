package pi

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAListThatTakesLongHoldsUpNothingElse(t *testing.T) {
	h, s := newStage(t, Options{SessionDir: t.TempDir()})
	join(t, h, core.Card{ID: "x"}, echo)
	c := dial(t, s, ConnOptions{})
	c.open("s", "x")
	release := make(chan struct{})
	s.engine.Lock()
	s.lists.Add(func(context.Context) { <-release }) // a disk that takes its time
	s.engine.Unlock()
	const lists = 2 * command.Workers
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
	s.engine.Lock()
	for range command.Workers {
		s.jobs.Add(func(context.Context) { <-release }) // a disk that takes its time
	}
	s.engine.Unlock()
	c.send(`{"id":"slow","type":"create_session","sessionId":"s","cwd":"/"}`)
	c.ok(`{"type":"create_session","sessionId":"t"}`)
	if f := c.ok(`{"type":"list_sessions"}`); has(f, `"sessionId":"s"`) {
		t.Errorf("got %s before the disk was there, want no session s", f.Data)
	}
	close(release)
	c.until(`"id":"slow","type":"response"`, `"success":true`, `"sessionVersion":0`)
}

func TestFilesOfAPrincipalAreNobodyElsesFromWhicheverRoot(t *testing.T) {
	above := conversation.Resolve(t.TempDir())
	h, s := newStage(t, Options{SessionDir: filepath.Join(above, "sessions"), SessionRoots: []string{above}})
	join(t, h, core.Card{ID: "x"}, echo)
	ann := dial(t, s, ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.open("s", "x")
	ann.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	settled(s)
	path := fileOf(ann, "s")
	anybody := dial(t, s, ConnOptions{})
	anybody.fails(`{"type":"load_session","sessionPath":"`+path+`"}`, conversation.NotAllowed)
	if f := anybody.ok(`{"type":"list_stored_sessions"}`); string(f.Data) != `{"sessions":[]}` {
		t.Errorf("got %s listed for somebody else, want nothing", f.Data)
	}
}
