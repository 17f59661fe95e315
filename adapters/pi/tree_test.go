package pi

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

var someTime = time.UnixMilli(1_800_000_000_000)

func userSays(text string) message { return userMessage(text, nil, someTime.UnixMilli()) }

func spokenIn(context []*node) string {
	var all []string
	for _, n := range context {
		all = append(all, n.said().spoken())
	}
	return strings.Join(all, " | ")
}

func TestTheContextIsThePathToTheLeaf(t *testing.T) {
	tree := newTree("id", "s", "/", "")
	a := tree.say(userSays("a"))
	tree.say(userSays("b"))
	tree.move(a)
	tree.grow(sessionfile.BranchSummary{FromID: "x", Summary: "there was b"})
	tree.grow(sessionfile.Custom{CustomType: "mine"})
	tree.grow(sessionfile.CustomMessage{CustomType: "mine", Content: json.RawMessage(`"hello"`), Display: true})
	tree.say(userSays("c"))
	want := "a | What was said on another branch, in short:\n\nthere was b | hello | c"
	if got := spokenIn(tree.context); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := string(tree.context[2].said().json); got != `{"role":"custom","customType":"mine","content":"hello","display":true,"timestamp":`+got[len(got)-14:] {
		t.Errorf("a message of an extension: got %s", got)
	}
	tree.move(nil)
	if got := spokenIn(tree.context); got != "" {
		t.Errorf("before all: got %q, want nothing", got)
	}
}

func TestACompactionStandsForWhatCameBeforeWhatItKeeps(t *testing.T) {
	tree := newTree("id", "s", "/", "")
	tree.say(userSays("a"))
	b := tree.say(userSays("b"))
	tree.say(userSays("c"))
	tree.grow(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: b.ID(), TokensBefore: 9})
	d := tree.say(userSays("d"))
	summary := "What was said before, in short:\n\n"
	if got, want := spokenIn(tree.context), summary+"s | b | c | d"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	tree.grow(sessionfile.Compaction{Summary: "t", FirstKeptEntryID: d.ID(), TokensBefore: 9})
	if got, want := spokenIn(tree.context), summary+"t | d"; got != want {
		t.Errorf("compacted again: got %q, want %q", got, want)
	}
	tree.grow(sessionfile.Compaction{Summary: "u", FirstKeptEntryID: "unknown"})
	if got, want := spokenIn(tree.context), summary+"u"; got != want {
		t.Errorf("keeping nothing: got %q, want %q", got, want)
	}
	tree.move(b)
	if got, want := spokenIn(tree.context), "a | b"; got != want {
		t.Errorf("before the compaction: got %q, want %q", got, want)
	}
}

func TestATreeIsTheSameOnceItWasReadAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tree := newTree("id", "s", "/", "")
		for range rapid.IntRange(0, 30).Draw(t, "steps") {
			one := func() *node {
				if i := rapid.IntRange(-1, len(tree.nodes)-1).Draw(t, "node"); i >= 0 {
					return tree.nodes[i]
				}
				return nil
			}
			switch rapid.IntRange(0, 6).Draw(t, "what") {
			case 0, 1:
				text := rapid.StringN(0, 10, 20).Draw(t, "text")
				tree.say(userSays(strings.Repeat(text, rapid.SampledFrom([]int{1, 200}).Draw(t, "times"))))
			case 2:
				if n := one(); n != nil {
					tree.grow(sessionfile.Compaction{Summary: "s", FirstKeptEntryID: n.ID()})
				}
			case 3:
				tree.move(one())
				tree.say(userSays("moved")) // a leaf that is not the last entry is not on the disk
			case 4:
				tree.grow(sessionfile.Info{Name: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "name")})
			case 5:
				tree.grow(sessionfile.ThinkingLevelChange{ThinkingLevel: "high"})
			case 6:
				if n := one(); n != nil {
					tree.grow(sessionfile.Label{TargetID: n.ID(), Label: rapid.SampledFrom([]string{"", "l"}).Draw(t, "label")})
				}
			}
		}
		data := append(tree.header.Line(), '\n')
		for _, n := range tree.nodes {
			data = append(append(data, n.Line...), '\n')
		}
		f, err := sessionfile.Parse(data)
		if err != nil {
			t.Fatal(err)
		}
		again := growTree(f)
		if got, want := spokenIn(again.context), spokenIn(tree.context); got != want || again.name != tree.name || again.level != tree.level || len(again.labels) != len(tree.labels) {
			t.Fatalf("got %q, %q, %q, want %q, %q, %q", got, again.name, again.level, want, tree.name, tree.level)
		}
	})
}

func TestAnEntryOfAReadTreeHasAnIDOfItsOwnAndIsFound(t *testing.T) {
	file := newTree("id", "s", "/", "")
	file.number = 1<<32 - 3
	for range 4 {
		file.say(userSays("read")) // up to 00000001
	}
	tree := newTree("id", "s", "/", "")
	for _, n := range file.nodes {
		tree.add(n.Entry, n.said())
	}
	tree.number = file.number - 4
	for range 4 {
		tree.say(userSays("said"))
	}
	var ids []string
	for i, n := range tree.nodes {
		ids = append(ids, n.ID())
		if got := tree.find(n.ID()); got != n {
			t.Errorf("entry %d: got %v, want it found by its id %s", i, got, n.ID())
		}
		if i > 0 && n.parent != tree.nodes[i-1] {
			t.Errorf("entry %d: got the parent %v, want the one before", i, n.parent)
		}
	}
	want := []string{"fffffffe", "ffffffff", "00000000", "00000001", "00000002", "00000003", "00000004", "00000005"}
	if !slices.Equal(ids, want) {
		t.Errorf("got the ids %q, want %q", ids, want)
	}
	for _, id := range []string{"", "00000006", "FFFFFFFE", "x"} {
		if got := tree.find(id); got != nil {
			t.Errorf("got %v for %q, want nothing", got, id)
		}
	}
}

func TestTheLatestTurnsThatFitAreTold(t *testing.T) {
	var context []message
	for _, text := range []string{"one", "two", "three"} {
		context = append(context, userSays(text), toolMessage("1", "read", "output", false, 1))
	}
	size := func(text string) int { turn, _ := userSays(text).turn(); return turn.Size() }
	for bytes, want := range map[int]int{-1: 0, 0: 0, size("three"): 1, size("three") + size("two"): 2, 1 << 20: 3} {
		if got := turns(context, bytes); len(got) != want {
			t.Errorf("in %d bytes: got %d turns, want %d", bytes, len(got), want)
		}
	}
	image := message{role: roleUser, json: json.RawMessage(`{"role":"user","content":[{"type":"text","text":"12345678"},{"type":"image","data":"aaaa"}]}`)}
	if got := estimate(image); got != 1202 {
		t.Errorf("got an estimate of %d tokens, want 1202", got)
	}
}
