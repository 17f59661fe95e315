package pi_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// fileOf returns the session's file according to get_state.
func fileOf(c *testClient, session string) string {
	c.t.Helper()
	var info struct{ SessionFile string }
	if err := json.Unmarshal(c.ok(`{"type":"get_state","sessionId":"`+session+`"}`).Data, &info); err != nil {
		c.t.Fatal(err)
	}
	return info.SessionFile
}

// flush waits until everything is written.
func flush(s *pi.Server) {
	done := make(chan struct{})
	parts := s.Parts()
	for {
		if _, busy := parts.Store.Counts(); parts.Disk.Len() == 0 && busy == 0 {
			return
		}
		parts.Disk.Add(func(context.Context) { done <- struct{}{} })
		<-done
	}
}

func readFile(t *testing.T, path string) sessionfile.File {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := sessionfile.Parse(data)
	if err != nil || f.Skipped > 0 || data[len(data)-1] != '\n' {
		t.Fatalf("%s: got %v and %d lines skipped of\n%s", path, err, f.Skipped, data)
	}
	return f
}

func kindsIn(f sessionfile.File) string {
	var all []string
	for _, e := range f.Entries {
		name := e.Type
		if m := conversation.ReadMessage(e.Message()); m.Role != "" {
			name = m.Role
		}
		all = append(all, name)
	}
	return strings.Join(all, " ")
}

func TestAConversationIsWrittenAsItGrows(t *testing.T) {
	dir, cwd := t.TempDir(), t.TempDir()
	h, s := newServer(t, pi.Options{SessionDir: dir})
	joinAgent(t, h, core.Card{ID: "x"}, answerWith(core.ToolCall{ID: "1", Name: "read", Input: `{"a":1}`}, core.ToolResult{ID: "1", Output: "got"}, core.Text{Text: "done"}, core.Done{}))
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"create_session","sessionId":"s","agent":"x","cwd":"` + cwd + `"}`)
	path := fileOf(c, "s")
	want := regexp.QuoteMeta(filepath.Join(conversation.Resolve(dir), "--"+strings.ReplaceAll(cwd[1:], "/", "-")+"--")) + `/\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d{3}Z_[0-9a-f-]{36}\.jsonl$`
	if !regexp.MustCompile(want).MatchString(path) {
		t.Errorf("got the file %s, want one like %s", path, want)
	}
	c.ok(`{"type":"set_session_name","sessionId":"s","name":" before "}`)
	c.ok(`{"type":"set_session_name","sessionId":"s","name":"  "}`) // ignored, as in pi
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"sessionName":"before"`) {
		t.Errorf("got %s, want the trimmed name", f.Data)
	}
	flush(s)
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("before the first answer: got %v, want no file", err)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
	flush(s)
	f := readFile(t, path)
	if got, want := kindsIn(f), "model_change session_info session_info user assistant toolResult assistant"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if f.Header.Cwd != cwd || f.Header.Version != 3 || f.Header.SessionID != "s" {
		t.Errorf("got the header %+v", f.Header)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got the mode %v and %v, want access only for its owner", info.Mode(), err)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"again"}`)
	c.ok(`{"type":"delete_session","sessionId":"s"}`)
	flush(s)
	if got := len(readFile(t, path).Entries); got != 11 {
		t.Errorf("got %d entries after two prompts, want 11", got)
	}
	if held := s.Left()["files"]; held != 0 {
		t.Errorf("got %d files in memory without a session, want none", held)
	}
}

func TestFailedWritesAreRetriedLater(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not", "there")
	if err := os.WriteFile(filepath.Dir(dir), nil, 0o600); err != nil { // a file where a directory should be
		t.Fatal(err)
	}
	h, s := newServer(t, pi.Options{SessionDir: dir})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	if got := h.Counters()["pi.session_file.failed"]; got == 0 {
		t.Error("got no failure counted, want one")
	}
	if got := len(messagesOf(t, c, "s")); got != 2 {
		t.Errorf("got %d messages in memory, want 2", got)
	}
	if err := os.Remove(filepath.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
	flush(s)
	if got, want := kindsIn(readFile(t, fileOf(c, "s"))), "model_change user assistant user assistant"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAFileLoadedTwiceIsWrittenOnce(t *testing.T) {
	dir := t.TempDir()
	h, s := newServer(t, pi.Options{SessionDir: dir})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "x")
	c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	path := fileOf(c, "s")
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	for _, id := range []string{"s", "t", "s", "t"} {
		c.ok(`{"type":"prompt","sessionId":"` + id + `","message":"from ` + id + `"}`)
	}
	flush(s)
	f := readFile(t, path)
	if got := len(f.Entries); got != 11 {
		t.Errorf("got %d entries, want 11, those of both", got)
	}
	tree := conversation.FromFile(f)
	if got, want := len(tree.Context), 6; got != want {
		t.Errorf("got %d messages on the last branch, want %d", got, want)
	}
	if got := len(messagesOf(t, c, "s")); got != 6 {
		t.Errorf("got %d messages in the first session, want its 6", got)
	}
}

func TestAnAgentGetsALoadedConversation(t *testing.T) {
	for name, features := range map[string]core.Features{"one that forgets": 0, "one that remembers": core.FeatureSessions} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			h, s := newServer(t, pi.Options{SessionDir: dir})
			histories := make(chan string, 8)
			joinAgent(t, h, core.Card{ID: "x", Features: features}, func(a *testAgent, b hub.Batch) {
				if assigned(b) {
					var texts []string
					for _, turn := range b.Task.Request().History {
						texts = append(texts, turn.Role.String()+": "+turn.Text)
					}
					histories <- strings.Join(texts, "; ")
					a.report(b.Task, core.Text{Text: "heard"}, core.Done{})
				}
			})
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "x")
			c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
			<-histories
			flush(s)
			path := fileOf(c, "s")
			c.ok(`{"type":"delete_session","sessionId":"s"}`)
			f := c.ok(`{"type":"load_session","sessionPath":"` + path + `"}`)
			if !has(f, `"sessionId":"s"`, `"model":{"id":"x"`, `"messageCount":2`) {
				t.Errorf("got %s, want the session unchanged", f.Data)
			}
			want := "user: one; assistant: heard"
			for _, next := range []string{want, map[bool]string{true: "", false: want + "; user: two; assistant: heard"}[features != 0]} {
				c.ok(`{"type":"prompt","sessionId":"s","message":"two"}`)
				if got := <-histories; got != next {
					t.Errorf("got history %q, want %q", got, next)
				}
			}
		})
	}
}

func TestFilesAreReadableByTheirOwnerOnly(t *testing.T) {
	dir := t.TempDir()
	h, s := newServer(t, pi.Options{SessionDir: dir, SessionRoots: []string{dir}})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	as := func(id string) *testClient {
		return dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: id, Authenticated: id != ""}})
	}
	ann, bob, anybody := as("ann"), as("bob"), as("")
	ann.open("s", "x")
	ann.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
	flush(s)
	path := fileOf(ann, "s")
	for _, other := range []*testClient{bob, anybody} {
		other.fails(`{"type":"load_session","sessionPath":"`+path+`"}`, conversation.NotAllowed)
		if f := other.ok(`{"type":"list_stored_sessions"}`); string(f.Data) != `{"sessions":[]}` {
			t.Errorf("got %s listed for another principal, want nothing", f.Data)
		}
	}
	ann.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"t"}`)
	if f := ann.ok(`{"type":"list_stored_sessions"}`); !has(f, path) {
		t.Errorf("got %s, want the file listed for its owner", f.Data)
	}
}

func TestATooLargeFileIsNotLoaded(t *testing.T) {
	dir := t.TempDir()
	_, s := newServer(t, pi.Options{SessionDir: dir, MaxFileBytes: 100})
	c := dial(t, s, pi.ConnOptions{})
	path := filepath.Join(conversation.Resolve(dir), "x.jsonl")
	if err := os.WriteFile(path, []byte(`{"type":"session","version":3,"cwd":"/"}`+strings.Repeat("\n", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	c.fails(`{"type":"load_session","sessionPath":"`+path+`"}`, "Failed to load session from "+path)
	if f := c.ok(`{"type":"list_stored_sessions"}`); !has(f, path, `"fileExists":true`) {
		t.Errorf("got %s, want the file listed", f.Data)
	}
}

func TestDeletedSessionsLeaveNoState(t *testing.T) {
	h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	for range 100 {
		c.open("s", "x")
		c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
		_, nodes := treeOf(c, "s")
		c.ok(`{"type":"fork","sessionId":"s","entryId":"` + nodes[1].EntryID + `"}`)
		c.ok(`{"type":"delete_session","sessionId":"s"}`)
	}
	flush(s)
	for what, n := range s.Left() {
		if n != 0 {
			t.Errorf("got %d %s, want none", n, what)
		}
	}
}
