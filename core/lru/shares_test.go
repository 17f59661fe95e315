package lru_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/lru"
)

// cut returns how many values of each owner are left of those that it has.
func cut(has map[string]int, n int) map[string]int {
	var s lru.Shares
	of, left := map[string]*lru.Share{}, maps.Clone(has)
	for owner, values := range has {
		for range values {
			of[owner] = s.Add(owner)
		}
	}
	s.Cut(n)
	for owner, w := range of {
		for left[owner] > 0 && w.Loses() {
			s.Remove(w)
			left[owner]--
		}
	}
	return left
}

func TestWhoeverHasTheMostLosesFirst(t *testing.T) {
	for _, c := range []struct {
		has  map[string]int
		n    int
		want string
	}{
		{map[string]int{"a": 10, "b": 2}, 12, "map[a:10 b:2]"},
		{map[string]int{"a": 10, "b": 2}, 8, "map[a:6 b:2]"},
		{map[string]int{"a": 10, "b": 8, "c": 1}, 9, "map[a:4 b:4 c:1]"},
		{map[string]int{"a": 3, "b": 3}, 5, "map[a:2 b:3]"},
		{map[string]int{"a": 3}, 0, "map[a:0]"},
	} {
		if got := fmt.Sprint(cut(c.has, c.n)); got != c.want {
			t.Errorf("%v cut to %d: got %s, want %s", c.has, c.n, got, c.want)
		}
	}
}

func TestACutLeavesWhatThereIsRoomFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		has := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}), rapid.IntRange(1, 20)).Draw(t, "has")
		n := rapid.IntRange(0, 60).Draw(t, "room")
		all, sum := 0, 0
		for _, v := range has {
			all += v
		}
		left := cut(has, n)
		for owner, v := range left {
			if sum += v; v < has[owner] && v+1 < slices.Max(slices.Collect(maps.Values(left))) {
				t.Errorf("%v cut to %d: %s lost some and has %d of %v left, want none to have 2 more", has, n, owner, v, left)
			}
		}
		if want := min(all, n); sum != want {
			t.Errorf("%v cut to %d: got %v, want %d left", has, n, left, want)
		}
	})
}
