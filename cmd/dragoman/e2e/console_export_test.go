package e2e

import (
	"bufio"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// keepSaved has the page keep the text of each file that it saves.
const keepSaved = `(() => { const make = URL.createObjectURL; window.saved = []; URL.createObjectURL = (b) => { b.text().then((text) => window.saved.push(text)); return make.call(URL, b); }; return true; })()`

func TestATaskIsTakenAwayFromTheConsole(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	h := newTestHub(t, keepFrames)
	b := newBrowser(t, h.url())
	agent := h.joinAgent(t, "worker")
	said := "it's " + hostile + "\n$(echo taken) `echo taken` \\"
	asked := givenTo(t, h, agent, "alice", said)
	agent.report(asked, core.Text{Text: "done as you said"}, core.Done{})
	p := b.open("/#/tasks/" + string(asked.ID()))
	p.shows(".facts", "done")
	p.call("Browser.grantPermissions", map[string]any{"origin": h.url(), "permissions": []string{"clipboardReadWrite", "clipboardSanitizedWrite"}}, nil)
	p.call("Browser.setDownloadBehavior", map[string]any{"behavior": "allow", "downloadPath": t.TempDir()}, nil)
	p.await(keepSaved)

	p.click(".exports button:nth-of-type(1)")
	p.shows(".exports .hint", "Saved as "+string(asked.ID())+".jsonl")
	var kinds []string
	for lines := bufio.NewScanner(strings.NewReader(p.await(`window.saved[0]`))); lines.Scan(); {
		var e struct {
			Cursor string
			Kind   string
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Cursor == "" {
			t.Fatalf("got the line %s and %v, want an event", lines.Bytes(), err)
		}
		kinds = append(kinds, e.Kind)
	}
	if got := strings.Join(kinds, " "); got != "opened assigned text done" {
		t.Errorf("got %s, want every event", got)
	}
	p.click(".exports button:nth-of-type(2)")
	p.shows(".exports .hint", "-frames.json")
	var frames hub.TaskFrames
	if err := json.Unmarshal([]byte(p.await(`window.saved[1]`)), &frames); err != nil || frames.Frames == nil {
		t.Errorf("got %+v and %v, want the frames", frames, err)
	}

	// The command asks the same again, whatever is in it.
	p.call("Page.bringToFront", nil, nil)
	p.click(".exports button:nth-of-type(3)")
	p.shows(".exports .hint", "Copied.")
	command := p.await(`navigator.clipboard.readText()`)
	if !strings.HasPrefix(command, "curl --json '") {
		t.Fatalf("got %q, want a command of curl", command)
	}
	answered := make(chan error, 1)
	var out []byte
	go func() {
		var err error
		out, err = exec.CommandContext(t.Context(), "sh", "-c", command).Output()
		answered <- err
	}()
	again := agent.nextTask()
	if got := again.Request(); got.Content != said || got.Thread != asked.Request().Thread {
		t.Errorf("got %q in %s, want what was asked before", got.Content, got.Thread)
	}
	agent.report(again, core.Done{Text: "again"})
	if err := <-answered; err != nil || !strings.Contains(string(out), "again") {
		t.Errorf("got %s and %v, want the answer", out, err)
	}
}
