package pi_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestCommandsThatOnlyReadLeaveTheVersionOfTheirSession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"type":"prompt","sessionId":"s","message":"hello"}`)
	for kind, of := range command.Table {
		if of.Mutates || !of.Session && kind != "switch_session" || kind == "extension_ui_response" { // that answers a question
			continue
		}
		if f := c.ok(`{"type":"` + kind + `","sessionId":"s"}`); f.SessionVersion == nil || *f.SessionVersion != 1 {
			t.Errorf("%s: got %.200s, want version 1, that of the prompt", kind, f.Raw)
		}
	}
}

func TestEveryCommandThatChangesASessionRaisesItsVersionByOne(t *testing.T) {
	dir := conversation.Resolve(t.TempDir())
	g := newSummarizer(summaryBodies...)
	g.usage = 100_000 // so that there is something to compact
	s, c := g.converse(t, pi.Options{SessionDir: dir, Bash: true}, "one", "two", "three")
	c.ok(`{"type":"create_session","sessionId":"other","agent":"a"}`)
	c.ok(`{"type":"prompt","sessionId":"other","message":"hello"}`)
	flush(s)
	want := 3 // that of the prompts
	for _, kind := range slices.Sorted(maps.Keys(command.Table)) {
		if !command.Table[kind].Mutates {
			continue
		}
		members := strings.Replace(needed[kind], "FILE", fileOf(c, "other"), 1)
		_, nodes := treeOf(c, "s")
		switch kind {
		case "export_html":
			members = `"outputPath":"` + filepath.Join(dir, "page.html") + `"`
		case "fork":
			last := slices.IndexFunc(nodes, func(n conversation.TreeNode) bool { return n.Text == "three" })
			members = `"entryId":"` + nodes[last].EntryID + `"`
		case "navigate_tree":
			members = `"targetId":"` + nodes[0].EntryID + `"`
		}
		frame := `{"sessionId":"s","type":"` + kind + `"`
		if members != "" {
			frame += "," + members
		}
		want++
		if f := c.do(frame + "}"); !f.Success || f.SessionVersion == nil || *f.SessionVersion != want {
			t.Fatalf("%s: got %.300s, want version %d; one that needs members has an example here or in needed", frame, f.Raw, want)
		}
	}
}
