package cluster

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core/journal"
)

// silentBus is a bus on which nobody answers.
type silentBus struct{ Bus }

// heardFrom makes c hear a beat of a hub that hears everybody, and has just heard c.
func heardFrom(c *Cluster, name string, seq uint64) {
	b := beat{form: of(kindBeat), Hub: name, Epoch: 1, Index: int(name[0] - 'a'), Seq: seq, Formed: true}
	c.mu.Lock()
	age := c.age()
	c.mu.Unlock()
	for _, other := range []string{"a", "b", "c"} {
		if other != name {
			b.Known = append(b.Known, knownHub{Hub: other, Epoch: 1, Index: int(other[0] - 'a'), Heard: true, Seq: age})
		}
	}
	c.hear(encode(b), nil)
}

func TestAProcessThatStoodStillListensBeforeItJudges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := New(Settings{Life: journal.Life{Hub: "a", Epoch: 1}, Bus: silentBus{}})
		if err != nil {
			t.Fatal(err)
		}
		seq := uint64(0)
		hearAll := func() {
			seq++
			heardFrom(c, "b", seq)
			heardFrom(c, "c", seq)
		}
		look := func() {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.judgeAll(time.Now())
		}
		for range 8 {
			time.Sleep(beatEvery)
			hearAll()
			look()
		}
		if !c.HasQuorum() {
			t.Fatal("before the pause: got no quorum, want one")
		}
		time.Sleep(10 * time.Second) // nothing runs
		if c.HasQuorum() {
			t.Error("right after the pause: got a quorum, want none before others were heard")
		}
		look()
		if _, stale := c.Hubs(); !stale {
			t.Error("right after the pause: got a fresh view, want a stale one")
		}
		for range 3 {
			time.Sleep(beatEvery)
			seq++
			heardFrom(c, "c", seq)
			look()
		}
		all, stale := c.Hubs()
		if stale || all[1].State == Gone {
			t.Errorf("750 ms after the pause: got %s is %s and stale %t, want that it is given the same time as ever", all[1].Name, all[1].State, stale)
		}
	})
}
