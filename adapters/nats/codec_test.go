package nats

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
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

// recordsIn are the records of a whole message.
func recordsIn(data []byte) (records []journal.Record, err error) {
	for task, lines := range tasks(data) {
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
	rights := core.Event{Seq: 1, Epoch: 1, At: at, Body: core.Opened{Task: "t", From: core.Principal{ID: "ann", Credential: &core.Credential{Kind: core.KindPerson, Roles: []string{"r"}, Agents: []string{"a*"}, Packs: []string{"p"}}}}}
	both := append(recordsOf(opened, text), journal.Record{Task: "u", Event: opened}, journal.Record{Task: "t", Event: failed})
	for _, run := range [][]journal.Record{recordsOf(opened), recordsOf(rights), recordsOf(opened, text, failed), recordsOf(text), both} {
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

func TestTheRightsOfARequesterAreInTheRecordAlone(t *testing.T) {
	ann := core.Principal{ID: "ann", Dialect: "native", Authenticated: true, Credential: &core.Credential{Kind: core.KindPerson, Roles: []string{"thinker", "x"}, Agents: []string{"a*"}, Packs: []string{"p"}}}
	opened := core.Event{Seq: 1, Epoch: 1, At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Body: core.Opened{Task: "t", From: ann, Request: core.Request{To: core.ToAgent("a"), Content: `,"rights":{}`}}}
	msgs, _, err := encode(nil, nil, "s", recordsOf(opened), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	records, err := recordsIn(msgs[0].Data)
	if err != nil || len(records) != 1 {
		t.Fatalf("got %d records and %v, want one", len(records), err)
	}
	if d := cmp.Diff(ann, records[0].Event.Body.(core.Opened).From); d != "" {
		t.Errorf("the requester (-want +got):\n%s", d)
	}
	if text, err := records[0].Event.MarshalJSON(); err != nil || bytes.Contains(text, []byte("thinker")) {
		t.Errorf("what readers get: %s, %v, want it without the roles", text, err)
	}
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
		"begun again":                 {[]*nats.Msg{part("0", "3"), part("1", "3"), part("0", "2"), part("1", "2")}, "01"},
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

// FuzzSplitRecords holds that a message of a log is refused, or reads the same once
// it is written again.
func FuzzSplitRecords(f *testing.F) {
	for _, text := range []string{"", "\x00", "\x01a", "\x01a\x02bc", "\x05a", "\x80", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01x", "\x80\x00"} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := splitRecords(data)
		if err != nil {
			return
		}
		var again []byte
		for _, r := range got {
			again = append(binary.AppendUvarint(again, uint64(len(r))), r...)
		}
		back, err := splitRecords(again)
		if err != nil || len(back) != len(got) {
			t.Fatalf("got %d records and %v, want %d", len(back), err, len(got))
		}
		for i := range got {
			if !bytes.Equal(got[i], back[i]) {
				t.Errorf("record %d: got %q, want %q", i, back[i], got[i])
			}
		}
	})
}

// FuzzUsage holds that a message of usage records is refused, or reads the same once
// it is written again.
func FuzzUsage(f *testing.F) {
	for _, text := range []string{
		"", "\n", `{"t":"t","n":1,"at":5,"a":"a","r":"r","u":[1,2,3,4,5]}`, `{"u":[1]}`, `{"u":[1,2,3,4,5,6]}`, `{"n":-1}`, `{"at":9223372036854775807}`,
		`{"t":"t"}` + "\n" + `{"t":"u","th":"x"}` + "\n", "{}{}", "null", "\xff", `{"a":"\ud800"}`,
		`{"t":"t","n":4,"at":1767323045000,"a":"agent","r":"somebody","th":"thread","u":[1,22,0,3,4]}` + "\n",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := decodeUsage(data)
		if err != nil {
			return
		}
		var again bytes.Buffer
		for _, s := range got {
			line, err := json.Marshal(entryOf(s))
			if err != nil {
				t.Fatal(err)
			}
			scanned, ok := scanEntry(line)
			if d := cmp.Diff(entryOf(s), scanned); ok && d != "" {
				t.Errorf("%s is scanned as (-want +got):\n%s", line, d)
			}
			again.Write(append(line, '\n'))
		}
		back, err := decodeUsage(again.Bytes())
		if d := cmp.Diff(got, back); err != nil || d != "" {
			t.Errorf("got %v and (-want +got):\n%s", err, d)
		}
	})
}

func TestAUsageRecordIsScannedAsItIsWritten(t *testing.T) {
	for _, want := range []usageEntry{
		{"task", 4, 1767323045000, "agent", "somebody", "", [5]int64{1500, 22, 0, 3, 4}, 0, ""},
		{"task", 4, 1767323045000, "agent", "somebody", "thread", [5]int64{1500, 22, 0, 3, 4}, 12345, "EUR"},
		{"task", 4, 1767323045000, "agent", "somebody", "thread", [5]int64{1500, 22, 0, 3, 4}, 0, "EUR"},
	} {
		line, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := scanEntry(append(line, '\n')); !ok || got != want {
			t.Errorf("got %+v and %t, want %+v", got, ok, want)
		}
	}
}
