package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

func TestASessionKnowsTurnsOneByOneUpToABound(t *testing.T) {
	turn := func(n int) core.Turn { return core.Turn{Task: core.TaskID(fmt.Sprintf("%03d", n))} }
	var k agent.Known
	sent := core.Turn{Text: "sent along"}
	if got := k.Unseen([]core.Turn{sent, turn(1)}); len(got) != 2 {
		t.Errorf("nothing is known: got %v, want all", got)
	}
	if !k.Add([]core.Turn{turn(1)}, turn(3).Task) || k.Add(nil, turn(3).Task) || k.Add(nil, "") {
		t.Error("want news the first time alone")
	}
	copied := k
	for n := 4; n < 60; n++ {
		k.Add(nil, turn(n).Task)
	}
	if got := len(k.After); got != 16 {
		t.Errorf("got %d turns one by one, want 16", got)
	}
	all := []core.Turn{sent, turn(1), turn(2), turn(3), turn(50), turn(60)}
	if got := copied.Unseen(all); !slices.EqualFunc(got, []core.Turn{turn(2), turn(50), turn(60)}, func(a, b core.Turn) bool { return a.Task == b.Task }) {
		t.Errorf("got %v, want what came between and after", got)
	}
	if got := k.Unseen(all); len(got) != 1 || got[0].Task != "060" {
		t.Errorf("got %v, want the latest alone: a session gets no turn twice", got)
	}
}
