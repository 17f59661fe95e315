package command

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnAnswerIsPrintedOnceByTailHoweverItsAgentEndsIt(t *testing.T) {
	const id = "01a1fce3-62cb-759e-b7f1-0af7a918e27c"
	for name, tt := range map[string]struct {
		events []core.Body
		want   string
	}{
		"the end repeats what was streamed": {
			[]core.Body{core.Accepted{}, core.Text{Text: "hel"}, core.Text{Text: "lo"}, core.Done{Text: "hello"}},
			"1 accepted\n2 text hel\n3 text lo\n4 done\n",
		},
		"the end repeats it and adds data": {[]core.Body{core.Text{Text: "see"}, core.Done{Text: "see", Data: []byte(`{"n":1}`)}}, "1 text see\n2 done {\"n\":1}\n"},
		"the end says something else":      {[]core.Body{core.Text{Text: "hel"}, core.Done{Text: "hello"}}, "1 text hel\n2 done hello\n"},
		"nothing was streamed":             {[]core.Body{core.Done{Text: "hello"}}, "1 done hello\n"},
	} {
		for _, several := range []bool{true, false} {
			var out bytes.Buffer
			tail := newTailer(&out, false, several)
			for i, b := range tt.events {
				if err := tail.print(client.Line{Task: id, Event: core.Event{Seq: uint64(i + 1), At: time.Now(), Body: b}}); err != nil {
					t.Fatal(err)
				}
			}
			got := ""
			for l := range strings.Lines(out.String()) {
				words := strings.Fields(l)[1:] // the time of day
				if several {
					if words[0] != id {
						t.Errorf("%s: got %q, want the id of the task, as tail takes it", name, l)
					}
					words = words[1:]
				}
				if l != strings.TrimRight(l, " \n")+"\n" {
					t.Errorf("%s: got %q, want no blanks at its end", name, l)
				}
				got += strings.Join(words, " ") + "\n"
			}
			if got != tt.want || len(tail.streamed) != 0 {
				t.Errorf("%s: got %q and %d tasks remembered, want %q and none", name, got, len(tail.streamed), tt.want)
			}
		}
	}
}

func TestTailNamesTheCallsOfTools(t *testing.T) {
	for want, body := range map[string]core.Body{
		`c1 add {"n":1}`:             core.ToolCall{ID: "c1", Name: "add", Input: `{"n":1}`},
		`c2 rm {}`:                   core.ApprovalRequested{ID: "c2", Name: "rm", Input: "{}"},
		"c2 approved by local: fine": core.ApprovalDecided{ID: "c2", Approved: true, By: "local", Reason: "fine"},
		"c2 denied by the time-out":  core.ApprovalDecided{ID: "c2", By: "the time-out"},
	} {
		if got := summary(body); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
