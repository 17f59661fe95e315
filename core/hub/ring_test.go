package hub

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestARingGivesBackInOrderWhatItWasGivenAndKeepsNoneOfIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q ring[int]
		var want []int
		given := 0
		for _, in := range rapid.SliceOfN(rapid.Bool(), 1, 500).Draw(t, "pushes") {
			if in {
				given++
				q.push(given)
				want = append(want, given)
				continue
			}
			got, ok := q.pop()
			if ok != (len(want) > 0) || ok && got != want[0] {
				t.Fatalf("pop: got %d, %t with %v left", got, ok, want)
			}
			want = want[min(1, len(want)):]
		}
		if q.len() != len(want) || len(want) > 0 && q.first() != want[0] {
			t.Fatalf("got %d left, the first of %v, want %v", q.len(), q.items, want)
		}
		var kept []int
		for _, v := range q.items[:cap(q.items)] {
			if v != 0 {
				kept = append(kept, v)
			}
		}
		if !slices.Equal(kept, want) {
			t.Errorf("the ring keeps %v, want %v", kept, want)
		}
	})
}
