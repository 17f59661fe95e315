package nats

import (
	"bytes"
	"errors"
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

// recordsIn are the records of a whole message; its subject is of the task "former".
func recordsIn(data []byte) (records []journal.Record, err error) {
	for task, lines := range tasks(data, "former") {
		if !plain(task) {
			return nil, errNoTask
		}
		events, err := decode(lines)
		if err != nil {
			if events != nil {
				return nil, errors.New("there are events beside the error")
			}
			return nil, err
		}
		for _, e := range events {
			records = append(records, journal.Record{Task: task, Event: e})
		}
	}
	return records, nil
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
	both := append(recordsOf(opened, text), journal.Record{Task: "u", Event: opened}, journal.Record{Task: "t", Event: failed})
	for _, run := range [][]journal.Record{recordsOf(opened), recordsOf(opened, text, failed), recordsOf(text), both} {
		msgs, _, err := encode(nil, nil, "s", run, 1<<20)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(msgs[0].Data, 7)
		f.Add(bytes.TrimPrefix(msgs[0].Data, []byte(taskLine+"t"+endOfTask)), 7)
	}
	for _, data := range []string{
		"", "\n", "{}", "null", `{"seq":1,"kind":"text","body":{"text":"a"}}` + "\n", `{"seq":1,"kind":"later","body":{}}`,
		`{"seq":18446744073709551615,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[0]}}`, "\x00\xff",
		taskLine, taskLine + endOfTask, taskLine + "t" + endOfTask, taskLine + "a.b" + endOfTask + `{"seq":1,"kind":"done","body":{}}`,
		taskLine + "t" + endOfTask + taskLine + "u" + endOfTask, taskLine + "t" + endOfTask + `{"seq":1,"kind":"done","body":{}}` + "\n" + taskLine + "u",
	} {
		f.Add([]byte(data), 1)
	}
	f.Fuzz(func(t *testing.T, data []byte, part int) {
		records, err := recordsIn(data)
		if err != nil {
			return
		}
		if len(records) == 0 {
			t.Fatal("got neither an event nor an error, want one of them")
		}
		part = 1 + max(0, part)%4096
		msgs, _, err := encode(nil, nil, "s", records, part)
		if err != nil {
			t.Fatalf("writing what was read: got %v, want no error", err)
		}
		whole := assembled(msgs)
		again, err := recordsIn(whole)
		if err != nil || len(again) != len(records) {
			t.Fatalf("reading what was written: got %d events and %v, want %d", len(again), err, len(records))
		}
		for i := range again {
			if again[i].Task != records[i].Task {
				t.Fatalf("event %d: got it of task %q, want %q", i, again[i].Task, records[i].Task)
			}
		}
		same, _, err := encode(nil, nil, "s", again, part)
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
			ack, err := j.js.Publish(t.Context(), j.prefix+slot(task), []byte(taskLine+string(task)+endOfTask+data))
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

func TestAMessageThatNamesNoTaskIsNotPassedOver(t *testing.T) {
	j, err := Open(t.Context(), Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	for _, data := range []string{`{"seq":1,"kind":"text","body":{"text":"a"}}`, taskLine + "t", ""} {
		if _, err := j.js.Publish(t.Context(), j.prefix+"t", []byte(data)); err != nil {
			t.Fatal(err)
		}
		if _, err := j.Read(t.Context(), "t", 0, 0); !errors.Is(err, errNoTask) {
			t.Errorf("reading %q: got %v, want %v", data, err, errNoTask)
		}
		if err := j.Heads(t.Context(), func(journal.Head) bool { return true }); !errors.Is(err, errNoTask) {
			t.Errorf("listing %q: got %v, want %v", data, err, errNoTask)
		}
		if err := j.stream.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
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
