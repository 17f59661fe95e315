package pi_test

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestASlowListDelaysNoOtherCommand(t *testing.T) {
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	release := stall(s.Parts().Lists, 1)
	const lists = 2 * command.Workers
	for i := range lists {
		c.send(fmt.Sprintf(`{"id":"l%d","type":"list_stored_sessions"}`, i))
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	path := fileOf(c, "s")
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	c.ok(`{"type":"get_tree","sessionId":"t"}`)
	if n := c.count(`"type":"response","command":"list_stored_sessions"`); n != 0 {
		t.Errorf("got %d lists while the disk was blocked, want none", n)
	}
	release()
	for i := range lists {
		c.until(fmt.Sprintf(`"id":"l%d","type":"response"`, i), path)
	}
}

func TestASlowDirectoryDelaysNoOtherCommand(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	release := stall(s.Parts().Disk, command.Workers)
	c.send(`{"id":"slow","type":"create_session","sessionId":"s","cwd":"/"}`)
	c.ok(`{"type":"create_session","sessionId":"t"}`)
	if f := c.ok(`{"type":"list_sessions"}`); has(f, `"sessionId":"s"`) {
		t.Errorf("got %s while the disk was blocked, want no session s", f.Data)
	}
	release()
	c.until(`"id":"slow","type":"response"`, `"success":true`, `"sessionVersion":0`)
}

func TestFilesOfAPrincipalAreClosedToOthersFromEveryRoot(t *testing.T) {
	above := conversation.Resolve(t.TempDir())
	h, s := newServer(t, pi.Options{SessionDir: filepath.Join(above, "sessions"), SessionRoots: []string{above}})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.open("s", "x")
	ann.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	path := fileOf(ann, "s")
	anybody := dial(t, s, pi.ConnOptions{})
	anybody.fails(`{"type":"load_session","sessionPath":"`+path+`"}`, conversation.NotAllowed)
	if f := anybody.ok(`{"type":"list_stored_sessions"}`); string(f.Data) != `{"sessions":[]}` {
		t.Errorf("got %s listed for another principal, want nothing", f.Data)
	}
}
