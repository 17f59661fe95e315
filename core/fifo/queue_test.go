package fifo

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestAQueueReturnsValuesInOrderAndReleasesThem(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var want []int
		pushed := 0
		for _, does := range rapid.SliceOfN(rapid.SampledFrom([]string{"push", "push", "pop", "pop", "delete"}), 1, 500).Draw(t, "calls") {
			switch does {
			case "push":
				pushed++
				q.Push(pushed)
				want = append(want, pushed)
				continue
			case "delete":
				n, of := rapid.IntRange(0, 9).Draw(t, "n"), rapid.IntRange(1, 5).Draw(t, "of")
				q.DeleteFirst(n, func(v int) bool { return v%of == 0 })
				want = slices.DeleteFunc(want, func(v int) bool {
					if v%of == 0 {
						n--
					}
					return v%of == 0 && n >= 0
				})
				continue
			}
			got, ok := q.Pop()
			if ok != (len(want) > 0) || ok && got != want[0] {
				t.Fatalf("Pop: got %d, %t with %v left", got, ok, want)
			}
			want = want[min(1, len(want)):]
		}
		if q.Len() != len(want) || len(want) > 0 && q.First() != want[0] {
			t.Fatalf("got %d left, the first of %v, want %v", q.Len(), q.items, want)
		}
		if all := q.Items(); !slices.Equal(all, want) {
			t.Fatalf("Items: got %v, want %v", all, want)
		}
		var kept []int
		for _, v := range q.items[:cap(q.items)] {
			if v != 0 {
				kept = append(kept, v)
			}
		}
		if !slices.Equal(kept, want) {
			t.Errorf("the queue keeps %v, want %v", kept, want)
		}
	})
}

// A long queue with one push for each pop moves its values now and then, not each time.
func TestALongQueueSeldomMovesItsValues(t *testing.T) {
	const held, turns = 1000, 100_000
	var q Queue[int]
	for i := range held {
		q.Push(i)
	}
	moved := 0
	for i := range turns {
		head, first := q.head, &q.items[0]
		q.Push(i)
		if q.head < head || &q.items[0] != first {
			moved += q.Len()
		}
		q.Pop()
	}
	if moved > 2*turns {
		t.Errorf("%d values were moved by %d turns, want at most two a turn", moved, turns)
	}
}

func TestAQueueThatWasLongKeepsLittleMemoryOnceItIsEmpty(t *testing.T) {
	var q Queue[int]
	for i := range 5000 {
		q.Push(i)
	}
	for q.Len() > 0 {
		q.Pop()
	}
	if got := cap(q.items); got > 1024 {
		t.Errorf("got room for %d values kept, want it for 1024 at most", got)
	}
}
