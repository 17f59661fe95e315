package pi_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// realSession is a file written by pi-coding-agent 0.54.2. It has two branches, a summary of
// the abandoned one, entries of every type, and a compaction.
const realSession = "testdata/session-of-pi-0.54.2.jsonl"

func TestAFileOfPiIsLoadedAndContinued(t *testing.T) {
	dir := conversation.Resolve(t.TempDir())
	path := filepath.Join(dir, "real.jsonl")
	data, err := os.ReadFile(realSession)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	h, s := newServer(t, pi.Options{SessionDir: dir})
	joinAgent(t, h, core.Card{ID: "fake-1", Dialect: "fake"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	if f := c.ok(`{"type":"list_stored_sessions"}`); !has(f, `"sessionId":"real","sessionName":"files"`, `"cwd":"/home/user/project"`, `"createdAt":"2026-11-21T07:20:13.119Z"`, `"messageCount":5`) {
		t.Errorf("listed: got %s", f.Data)
	}
	f := c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"s"}`)
	if !has(f, `"sessionName":"files"`, `"model":{"id":"fake-1"`, `"thinkingLevel":"high"`, `"messageCount":5`) {
		t.Errorf("loaded: got %s", f.Data)
	}
	var roles []string
	for _, m := range messagesOf(t, c, "s") {
		roles = append(roles, m.Role)
	}
	want := []string{"compactionSummary", "user", "assistant", "user", "assistant"} // as in the real program
	if d := cmp.Diff(want, roles); d != "" {
		t.Errorf("the messages (-want +got):\n%s", d)
	}
	_, nodes := treeOf(c, "s")
	shown := strings.Join(shownIn(nodes), "\n")
	for _, line := range []string{
		"model_change fake/fake-1 ", "message a.txt b.txt ", "message a.txt and b.txt before", "branch_summary The files were removed on another branch. ",
		"label before → 14ed4500 ", "session_info files ", "custom extension ", "custom_message remember the milk ", "message Sat ", "message I should look. ",
		"compaction We looked at the files and kept them. ",
	} {
		if !strings.Contains("\n"+shown+"\n", "\n"+line+"\n") {
			t.Errorf("got no entry %q in\n%s", line, shown)
		}
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"and now?"}`)
	flush(s)
	after, err := os.ReadFile(path)
	if err != nil || !strings.HasPrefix(string(after), string(data)) {
		t.Fatalf("got %v and %d bytes, want the file unchanged, with new lines appended", err, len(after))
	}
	grown := conversation.FromFile(readFile(t, path))
	if got, want := len(grown.Context), 7; got != want {
		t.Errorf("got %d messages in the file, want %d", got, want)
	}
}

func TestAnUnknownAgentIsNotBound(t *testing.T) {
	dir := conversation.Resolve(t.TempDir())
	data, err := os.ReadFile(realSession)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "real.json"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	h, s := newServer(t, pi.Options{SessionDir: dir})
	joinAgent(t, h, core.Card{ID: "fake-1", Dialect: "coven"}, echoAgent) // the same id, of another dialect
	c := dial(t, s, pi.ConnOptions{})
	if f := c.ok(`{"type":"load_session","sessionPath":"` + filepath.Join(dir, "real.json") + `"}`); has(f, `"model"`) || !has(f, `"sessionId":"real"`) {
		t.Errorf("got %s, want no model", f.Data)
	}
	c.ok(`{"type":"prompt","sessionId":"real","message":"who is there?"}`) // to any free agent
}

func TestLoadingASessionIsNotAnnounced(t *testing.T) {
	c, s, path := afterOnePrompt(t, pi.Options{SessionDir: t.TempDir()})
	other := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	c.ok(`{"type":"create_session","sessionId":"u"}`)
	for _, who := range []*testClient{c, other} {
		who.until(`"type":"session_created"`, `"sessionId":"u"`) // earlier events have arrived
		if got := who.count(`"type":"session_created"`, `"sessionId":"t"`); got != 0 {
			t.Errorf("got %d session_created for a loaded session, want none", got)
		}
	}
}

func TestANewConversationKeepsTheAgentAndTheThinkingLevel(t *testing.T) {
	c, s, _ := afterOnePrompt(t, pi.Options{SessionDir: t.TempDir()})
	c.ok(`{"type":"set_thinking_level","sessionId":"s","level":"high"}`)
	c.ok(`{"type":"new_session","sessionId":"s"}`)
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"thinkingLevel":"high"`, `"model":{"id":"x"`, `"messageCount":0`) {
		t.Errorf("got %s, want the earlier level and agent, and no messages", f.Data)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	flush(s)
	if got := conversation.FromFile(readFile(t, fileOf(c, "s"))).Level; got != "high" {
		t.Errorf("in the file: got the level %q, want high", got)
	}
}
