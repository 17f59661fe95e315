package task

import (
	"regexp"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

var version7 = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func TestWhatFollowsAnIDIsTheNextIDThereIs(t *testing.T) {
	for id, want := range map[core.TaskID]core.TaskID{
		"019b0000-0000-7000-8000-000000000001": "019b0000-0000-7000-8000-000000000002",
		"019b0000-0000-7000-8000-000000000009": "019b0000-0000-7000-8000-00000000000a",
		"019b0000-0000-7000-8000-0000000000ff": "019b0000-0000-7000-8000-000000000100",
		"019b0000-0000-7000-8fff-ffffffffffff": "019b0000-0000-7000-9000-000000000000",
		"019b0000-0000-7000-bfff-ffffffffffff": "019b0000-0000-7001-8000-000000000000",
		"019b0000-0000-7fff-bfff-ffffffffffff": "019b0000-0001-7000-8000-000000000000",
	} {
		if got := following(id); got != want {
			t.Errorf("behind %s: got %s, want %s", id, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		id := core.TaskID(core.NewID())
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			next := following(id)
			if !version7.MatchString(string(next)) || next <= id {
				t.Fatalf("got %s behind %s, want a greater UUID of version 7", next, id)
			}
			id = next
		}
	})
}

func TestTheIDsOfTasksGrowWhateverTheClockDoes(t *testing.T) {
	s := &Store{}
	s.noteID("no id of a task")
	s.noteID("ffff0000-0000-7000-8000-000000000000") // a clock was ahead
	last := s.newest
	for range 100 {
		id := s.nextID()
		if id <= last {
			t.Fatalf("got %s behind %s, want a greater id", id, last)
		}
		last = id
	}
}
