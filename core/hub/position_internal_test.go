package hub

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// FuzzParsePosition holds that a text is a position that is written the same again, or an invalid
// Fault of one short line.
func FuzzParsePosition(f *testing.F) {
	p := newPosition()
	f.Add(string(p.text))
	for range 3 {
		p.set(core.TaskID(core.NewID()), core.Cursor{Epoch: 1, Seq: 7})
		f.Add(string(p.text))
	}
	p.cluster = true
	for range 3 {
		p.set(core.TaskID(core.NewID()), core.Cursor{Epoch: 1, Seq: 7})
		f.Add(string(p.text))
	}
	for _, text := range []string{"", "x", "1.2", strings.Repeat("A", headChars), strings.Repeat("_", headChars+openChars), string(p.text) + "AAAA", string(p.text) + "\r\n"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		p, open, err := parsePosition(text)
		if err != nil {
			if f := core.AsFault(err); f.Code != core.CodeInvalid || len(f.Message) > 200 {
				t.Errorf("got %v, want a short invalid Fault", err)
			}
			return
		}
		if got := string(p.append(nil)); got != text || len(open) != len(p.open) {
			t.Errorf("got %q with %d open tasks, want %q with %d", got, len(p.open), text, len(open))
		}
	})
}

func TestAPositionKnowsTheOpenTasks(t *testing.T) {
	p, ids := newPosition(), []core.TaskID{}
	want := map[core.TaskID]core.Cursor{}
	for i := range 50 {
		id := core.TaskID(core.NewID())
		ids = append(ids, id)
		p.set(id, core.Cursor{Epoch: 1})
		want[id] = core.Cursor{Epoch: 1, Seq: uint64(i * i)}
		p.set(id, want[id])
		if i%3 == 0 {
			p.end(ids[i/2])
			p.end(ids[i/2]) // again
			delete(want, ids[i/2])
		}
	}
	again, open, err := parsePosition(string(p.text))
	if err != nil || again.newest != ids[49] {
		t.Fatalf("got the newest task %s and %v, want %s", again.newest, err, ids[49])
	}
	got := map[core.TaskID]core.Cursor{}
	for _, r := range open {
		got[r.task] = r.from
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("open tasks (-want +got):\n%s", d)
	}
	for len(p.open) <= mostOpen {
		p.set(core.TaskID(core.NewID()), core.Cursor{Epoch: 1})
	}
	text := p.append([]byte("x"))[1:]
	again, open, err = parsePosition(string(text))
	if err != nil || len(text) != MaxPosition || len(open) != mostOpen || again.newest != p.open[mostOpen-1].id {
		t.Errorf("with more than %d open tasks: got %d bytes, %d tasks, the newest %s and %v, want the oldest of them", mostOpen, len(text), len(open), again.newest, err)
	}
}

func TestAPositionOfAClusterCountsEachLineForItself(t *testing.T) {
	id := func(l task.Line, place uint64) core.TaskID {
		var b [16]byte
		binary.BigEndian.PutUint64(b[:], place)
		binary.BigEndian.PutUint64(b[8:], uint64(l)<<42)
		return core.TaskIDOf(b)
	}
	p := newPosition()
	p.cluster = true
	p.raise(id(0, 100))
	p.set(id(1, 300), core.Cursor{Epoch: 1, Seq: 5})
	p.set(id(2, 200), core.Cursor{Epoch: 1, Seq: 7})
	p.end(id(2, 200))
	again, open, err := parsePosition(string(p.append(nil)))
	if err != nil || len(open) != 1 || open[0].task != id(1, 300) || open[0].from.Seq != 5 {
		t.Fatalf("got the open tasks %v and %v, want the first", open, err)
	}
	for one, want := range map[core.TaskID]bool{
		id(1, 300): true, id(1, 299): true, id(1, 301): false, id(2, 200): true, id(2, 201): false, id(3, 99): true, id(3, 101): false,
	} {
		if got := again.hasRead(one); got != want {
			t.Errorf("task %s: got begun %v, want %v", one, got, want)
		}
	}
	for l := range task.Line(2 * mostLines) {
		p.set(id(l+1, 400+uint64(l)), core.Cursor{Epoch: 1})
	}
	again, open, err = parsePosition(string(p.append(nil)))
	if err != nil || len(again.text) > MaxPosition || len(again.lines) != mostLines || len(open) == 0 || again.floor() > id(0, 100) {
		t.Errorf("of many lines: got %d bytes, %d lines, %d open tasks after %s and %v", len(again.text), len(again.lines), len(open), again.floor(), err)
	}
}

// With 20 running tasks an id costs a copy of 600 bytes.
func BenchmarkPosition(b *testing.B) {
	p, ids := newPosition(), []core.TaskID{}
	for range 20 {
		ids = append(ids, core.TaskID(core.NewID()))
		p.set(ids[len(ids)-1], core.Cursor{Epoch: 1})
	}
	b.ReportAllocs()
	var text []byte
	for i := range b.N {
		p.set(ids[i%len(ids)], core.Cursor{Epoch: 1, Seq: uint64(i)})
		text = p.append(text[:0])
	}
}
