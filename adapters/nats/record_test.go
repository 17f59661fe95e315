package nats

import (
	"bytes"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

// recordsOf are events as records of one task.
func recordsOf(events ...core.Event) []journal.Record {
	run := make([]journal.Record, len(events))
	for i, e := range events {
		run[i] = journal.Record{Task: "t", Event: e}
	}
	return run
}

// FuzzRecord holds that whatever is read back from the store is refused, or is
// events that are written and read again as they are, in however many parts; and
// that a message of which a part is missing is not taken for a whole one.
func FuzzRecord(f *testing.F) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6e8, time.UTC)
	opened := core.Event{Seq: 1, Epoch: 1, At: at, Body: core.Opened{Task: "t", Request: core.Request{To: core.ToAgent("a"), Content: "hello"}}}
	text := core.MergeText([]core.Event{
		{Seq: 2, Epoch: 1, At: at, Body: core.Text{Text: "one\n"}}, {Seq: 3, Epoch: 1, At: at, Body: core.Text{Text: "two"}},
	})
	failed := core.Event{Seq: 4, Epoch: 1, At: at, Body: core.Failed{Fault: core.NewFault(core.CodeUnreachable, "gone")},
		Foreign: &core.Foreign{Dialect: "coven", Wire: []byte{0, 1, '\n'}}}
	for _, run := range [][]core.Event{{opened}, {opened, text, failed}, {text}} {
		msgs, _, err := encode(nil, nil, "s", recordsOf(run...), 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(msgs[0].Data, 7)
	}
	for _, data := range []string{
		"", "\n", "{}", "null", `{"seq":1,"kind":"text","body":{"text":"a"}}` + "\n", `{"seq":1,"kind":"later","body":{}}`,
		`{"seq":18446744073709551615,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[0]}}`, "\x00\xff",
	} {
		f.Add([]byte(data), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, part int) {
		events, err := decode(data)
		if err != nil {
			if events != nil {
				t.Errorf("got %d events beside the error, want none", len(events))
			}
			return
		}
		if len(events) == 0 {
			t.Fatal("got neither an event nor an error, want one of them")
		}
		part = 1 + max(0, part)%4096
		msgs, _, err := encode(nil, nil, "s", recordsOf(events...), part)
		if err != nil {
			t.Fatalf("writing what was read: got %v, want no error", err)
		}
		whole := assembled(msgs)
		again, err := decode(whole)
		if err != nil || len(again) != len(events) {
			t.Fatalf("reading what was written: got %d events and %v, want %d", len(again), err, len(events))
		}
		same, _, err := encode(nil, nil, "s", recordsOf(again...), part)
		if err != nil || !bytes.Equal(assembled(same), whole) {
			t.Fatalf("got %s and %v, want it stable: %s", assembled(same), err, whole)
		}
		for lost := range min(len(msgs), 8) {
			rest := append(append([]*nats.Msg{}, msgs[:lost]...), msgs[lost+1:]...)
			if got := assembled(rest); len(msgs) > 1 && got != nil {
				t.Fatalf("without part %d of %d: got %d bytes, want none", lost, len(msgs), len(got))
			}
		}
	})
}

// assembled is the last whole message that comes of some.
func assembled(msgs []*nats.Msg) (whole []byte) {
	var a assembly
	for _, m := range msgs {
		if data, ok := a.add(m.Header, m.Data); ok {
			whole = data
		}
	}
	return whole
}

func TestPartsThatDoNotBelongTogetherMakeNoMessage(t *testing.T) {
	part := func(i, of string) *nats.Msg {
		return &nats.Msg{Header: nats.Header{partHeader: {i}, partsHeader: {of}}, Data: []byte(i)}
	}
	for name, c := range map[string]struct {
		msgs []*nats.Msg
		want string
	}{
		"in order":                    {[]*nats.Msg{part("0", "3"), part("1", "3"), part("2", "3")}, "012"},
		"begun anew":                  {[]*nats.Msg{part("0", "3"), part("1", "3"), part("0", "2"), part("1", "2")}, "01"},
		"without the first":           {[]*nats.Msg{part("1", "2")}, ""},
		"of messages of other length": {[]*nats.Msg{part("0", "3"), part("1", "3"), part("2", "4")}, ""},
		"twice":                       {[]*nats.Msg{part("0", "2"), part("0", "2"), part("1", "2"), part("1", "2")}, "01"},
		"numbers that are none":       {[]*nats.Msg{part("0", "two"), part("zero", "2"), part("1", "2"), part("-1", "0")}, ""},
	} {
		if got := string(assembled(c.msgs)); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestWhatIsNoRecordOfOursIsNamedAndNotPassedOver(t *testing.T) {
	for name, task := range map[string]core.TaskID{"a line that is no event": "torn", "an event of a kind that nobody knows": "later"} {
		t.Run(name, func(t *testing.T) {
			j, err := Open(t.Context(), Options{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			defer j.Close()
			first := core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Text{Text: "a"}}
			if err := j.Append(t.Context(), journal.Record{Task: task, Event: first}); err != nil {
				t.Fatal(err)
			}
			data := map[core.TaskID]string{"torn": `{"seq":2,"kind":"te`, "later": `{"seq":2,"kind":"sung","body":{}}`}[task]
			ack, err := j.js.Publish(t.Context(), j.prefix+string(task), []byte(data))
			if err != nil {
				t.Fatal(err)
			}
			want := "message " + strconv.FormatUint(ack.Sequence, 10) + " of the journal, of task " + string(task)
			if _, err := j.Read(t.Context(), task, 0, 0); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("reading it: got %v, want %q in it", err, want)
			}
			err = j.Heads(t.Context(), func(journal.Head) bool { return true })
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("listing it: got %v, want %q in it", err, want)
			}
		})
	}
}

func TestTextThatIsAppendedAgainInOtherPiecesIsReadOnce(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	var pieces []core.Event
	for i, text := range []string{"a", "b", "c", "d", "e"} {
		pieces = append(pieces, core.Event{Seq: uint64(i + 1), Epoch: 1, At: time.Now(), Body: core.Text{Text: text}})
	}
	for _, e := range []core.Event{core.MergeText(pieces[:3]), core.MergeText(pieces[1:])} {
		if err := j.Append(t.Context(), journal.Record{Task: "t", Event: e}); err != nil {
			t.Fatal(err)
		}
	}
	events, err := j.Read(t.Context(), "t", 1, 0)
	if got := core.Fold(events).Text; err != nil || got != "bcde" {
		t.Errorf("behind the first: got %q and %v, want %q", got, err, "bcde")
	}
}
