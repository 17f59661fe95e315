package nats_test

import (
	"bytes"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
)

func TestWhatIsNoRecordOfOursIsNamedAndNotPassedOver(t *testing.T) {
	for name, task := range map[string]core.TaskID{"a line that is no event": "torn", "an event of a kind that nobody knows": "later"} {
		t.Run(name, func(t *testing.T) {
			j := opened(t, nats.Options{Dir: t.TempDir()})
			first := core.Event{Seq: 1, Epoch: 1, At: time.Now(), Body: core.Text{Text: "a"}}
			if err := j.Append(t.Context(), journal.Record{Task: task, Event: first}); err != nil {
				t.Fatal(err)
			}
			data := map[core.TaskID]string{"torn": `{"seq":2,"kind":"te`, "later": `{"seq":2,"kind":"sung","body":{}}`}[task]
			ack, err := j.JetStream().Publish(t.Context(), subjectOf(task), []byte(`{"task":"`+string(task)+"\"}\n"+data))
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

// It may be one whose subject and data a damaged file divides at another place.
func TestAMessageThatNamesNoTaskIsSaidAsMissing(t *testing.T) {
	o := nats.Options{Dir: t.TempDir()}
	j := opened(t, o)
	for _, data := range []string{`{"seq":1,"kind":"text","body":{"text":"a"}}`, ""} {
		if _, err := j.JetStream().Publish(t.Context(), subjectOf("t"), []byte(data)); err != nil {
			t.Fatal(err)
		}
	}
	must(t, j.Close())
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	j = opened(t, o)
	if heads := listed(t, j); len(heads) > 0 {
		t.Errorf("got the heads %+v, want none", heads)
	}
	if n := (found{log: log.String()}).missing(t); n != 2 {
		t.Errorf("got %d records missing by the log\n%swant 2", n, log.String())
	}
}

func TestTextThatIsAppendedAgainInOtherPiecesIsReadOnce(t *testing.T) {
	j := opened(t, nats.Options{Dir: t.TempDir()})
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
		t.Errorf("after the first: got %q and %v, want %q", got, err, "bcde")
	}
}
