package recorder_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
)

func TestSecretsAreNotRecorded(t *testing.T) {
	r, err := redact.New(nil, []string{"correct-horse"})
	if err != nil {
		t.Fatal(err)
	}
	s := startWith(time.Second, func() *redact.Redactor { return r })
	one, w := s.run()
	report(t, one, w, core.Text{Text: "it is cor"}, core.Text{Text: "rect"}, core.Text{Text: "-horse, "}, core.ToolResult{ID: "1", Output: "correct-horse"}, core.Text{Text: "corr"}, core.Done{})
	s.stop(t)
	var text strings.Builder
	next := uint64(1)
	for _, e := range s.read(t, one) {
		if e.Seq != next {
			t.Errorf("got event %d, want %d", e.Seq, next)
		}
		next = e.End() + 1
		switch b := e.Body.(type) {
		case core.Text:
			text.WriteString(b.Text)
		case core.ToolResult:
			text.WriteString("<" + b.Output + ">")
		}
	}
	if got, want := text.String(), "it is [redacted], <[redacted]>corr"; got != want || next != one.Events()[len(one.Events())-1].Seq+1 {
		t.Errorf("got %q to %d in the journal, want %q and every event", got, next-1, want)
	}
	if got := one.Answer().Text; got != "it is correct-horse, corr" {
		t.Errorf("got the answer %q, want it as the agent sent it", got)
	}
}

func TestWhatIsHeldBackIsRecordedAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := redact.New(nil, []string{"correct-horse"})
		if err != nil {
			t.Fatal(err)
		}
		s := startWith(time.Second, func() *redact.Redactor { return r })
		one, w := s.run()
		report(t, one, w, core.Text{Text: "it is corr"}, core.ToolCall{ID: "1"})
		time.Sleep(redact.HoldTime / 2)
		synctest.Wait()
		if one.IsRecorded() {
			t.Error("got it recorded at once, want it held back")
		}
		time.Sleep(redact.HoldTime)
		synctest.Wait()
		if !one.IsRecorded() {
			t.Error("got it not recorded, want it after a while")
		}
		report(t, one, w, core.Done{})
		s.stop(t)
	})
}
