package core_test

import (
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

func TestATaskIDTellsWhenItWasMade(t *testing.T) {
	before := time.Now().Truncate(time.Millisecond)
	got, ok := core.TaskID(core.NewID()).Begun()
	if !ok || got.Before(before) || got.After(time.Now()) {
		t.Errorf("got %v and %v, want a time from %v to now", got, ok, before)
	}
	if got, ok := core.TaskID("0197a3b2-c1d4-7e5f-8a9b-0c1d2e3f4a5b").Begun(); !ok || got.UnixMilli() != 0x0197a3b2c1d4 {
		t.Errorf("got %d and %v, want %d", got.UnixMilli(), ok, 0x0197a3b2c1d4)
	}
	for _, id := range []core.TaskID{"", "t", "0197a3b2-c1d4-4e5f-8a9b-0c1d2e3f4a5b", "0197a3b2-c1d4-7e5f-8a9b"} {
		if got, ok := id.Begun(); ok {
			t.Errorf("%q: got %v, want none", id, got)
		}
	}
}
