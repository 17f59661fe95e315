package pi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// noPlace is the error of a path outside the allowed directories.
const noPlace = "outputPath must be under an allowed directory for this server (its working directory or that of its sessions)"

func TestAPageHasTheWholeConversationEscaped(t *testing.T) {
	dir, cwd := t.TempDir(), conversation.Resolve(t.TempDir())
	h, s := newServer(t, pi.Options{SessionDir: dir, ExportDirs: []string{cwd}})
	const evil = `</pre></details><script>alert(1)</script><img src=x onerror=alert(2)>"'&`
	joinAgent(t, h, core.Card{ID: "x"}, answerWith(
		core.Thinking{Text: "thinking " + evil}, core.Text{Text: "calling"}, core.ToolCall{ID: "1", Name: "read " + evil, Input: `{"path":"<script>"}`},
		core.ToolResult{ID: "1", Output: "result broken " + evil, IsError: true}, core.Text{Text: "done " + evil},
		core.File{Name: "dot.png", MediaType: "image/png", Data: []byte("png")},
		core.File{Name: "dot.svg", MediaType: "image/svg+xml; x=\"", Data: []byte("<svg onload=alert(3)>")}, core.Done{},
	))
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"create_session","sessionId":"s","agent":"x","cwd":"` + cwd + `"}`)
	c.fails(`{"type":"export_html","sessionId":"s"}`, "Nothing to export yet - start a conversation first")
	c.ok(`{"type":"set_session_name","sessionId":"s","name":"</title><script>alert(4)</script>"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"asked <script>alert(5)</script>"}`)
	f := c.ok(`{"type":"export_html","sessionId":"s"}`)
	file := fileOf(c, "s")
	path := filepath.Join(cwd, "pi-session-"+strings.TrimSuffix(filepath.Base(file), ".jsonl")+".html")
	if string(f.Data) != `{"path":"`+path+`"}` {
		t.Errorf("got %s, want the path %s", f.Data, path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	for _, part := range []string{"asked", "thinking", "calling", "read", "result", "broken", "done", "data:image/png;base64,", "prefers-color-scheme: dark", "<details", `<p class="who">user `, `<p class="who">x `} {
		if !strings.Contains(text, part) {
			t.Errorf("got a page without %q:\n%s", part, text)
		}
	}
	if since := regexp.MustCompile(`since \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC`); len(since.FindString(text)) == 0 {
		t.Errorf("got a page without a readable start time:\n%s", text)
	}
	if bad := regexp.MustCompile(`(?i)<script|<svg|<img src=x|<[^>]* on[a-z]+=|https?://`).FindString(text); bad != "" {
		t.Errorf("got %q on the page, want it escaped, and no external references:\n%s", bad, text)
	}
	if got, want := strings.Count(text, "<details"), strings.Count(text, "</details>"); got != want || got < 3 {
		t.Errorf("got %d details opened and %d closed, want the tools folded", got, want)
	}
	c.ok(`{"type":"export_html","sessionId":"s"}`) // replaces the earlier page
}

func TestAPageIsWrittenToAllowedDirectoriesOnly(t *testing.T) {
	dir, cwd, other := conversation.Resolve(t.TempDir()), conversation.Resolve(t.TempDir()), conversation.Resolve(t.TempDir())
	h, s := newServer(t, pi.Options{SessionDir: dir, ExportDirs: []string{cwd}})
	joinAgent(t, h, core.Card{ID: "x"}, echoAgent)
	as := func(who core.Principal) *testClient {
		c := dial(t, s, pi.ConnOptions{Principal: who})
		c.ok(`{"type":"create_session","sessionId":"s","agent":"x","cwd":"` + other + `"}`)
		c.ok(`{"type":"prompt","sessionId":"s","message":"one"}`)
		return c
	}
	c := as(core.Principal{})
	if f := c.ok(`{"type":"export_html","sessionId":"s"}`); !has(f, dir) {
		t.Errorf("a session in another directory: got %s, want the page next to its file", f.Data)
	}
	ours, link := filepath.Join(cwd, "page.html"), filepath.Join(cwd, "link.html")
	if err := os.WriteFile(ours, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(other, "page.html"), link); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(other, "page.html"): noPlace,
		"page.html":                       noPlace, // in the session's directory, which is not allowed
		link:                              "Failed to export session: " + conversation.Resolve(cwd) + "/link.html cannot be written (path escapes from parent)",
		cwd + "/../page.html":             noPlace,
		filepath.Join(cwd, "page.txt"):    "outputPath must point to a .html file",
		ours:                              "Failed to export session: " + conversation.ErrTaken.Error(),
	} {
		c.fails(`{"type":"export_html","sessionId":"s","outputPath":"`+path+`"}`, want)
	}
	if data, err := os.ReadFile(ours); err != nil || string(data) != "precious" {
		t.Errorf("got %q and %v, want the file unchanged", data, err)
	}
	if there, err := os.ReadDir(other); err != nil || len(there) > 0 {
		t.Errorf("got %v and %v, want no files outside", there, err)
	}
	ann := as(core.Principal{ID: "ann", Authenticated: true})
	ann.fails(`{"type":"export_html","sessionId":"s","outputPath":"`+filepath.Join(cwd, "ann.html")+`"}`, noPlace)
	ann.ok(`{"type":"export_html","sessionId":"s"}`)
}
