package pirpc_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAConfirmationIsAnApprovalOfTheToolThatRuns(t *testing.T) {
	for _, approved := range []bool{true, false} {
		play(t, pirpc.Options{}, func(n *nursery) {
			asked, k := n.ask(hello()), <-n.kids
			k.prompted()
			k.say(
				`{"type":"tool_execution_start","toolCallId":"t1","toolName":"bash","args":{"command":"rm -rf /"}}`,
				`{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Dangerous!","message":"Allow rm -rf?"}`,
			)
			requested := bodies[core.ApprovalRequested](n, asked)
			want := core.ApprovalRequested{ID: "t1", Name: "bash", Input: `{"title":"Dangerous!","message":"Allow rm -rf?","tool":"bash","tool_input":"{\"command\":\"rm -rf /\"}"}`, InputSHA256: "97a54c8a2a5a715a9cf627751a02c0bb23d5a2a6af6a04e8cf380f75e574dde6"}
			if len(requested) != 1 || requested[0] != want {
				t.Fatalf("got %+v, want %+v", requested, want)
			}
			if err := n.user.Decide(t.Context(), asked.ID(), core.ApprovalDecided{ID: "t1", Approved: approved}); err != nil {
				t.Fatal(err)
			}
			if c := k.next("extension_ui_response"); c.ID != "u1" || c.Confirmed == nil || *c.Confirmed != approved {
				t.Errorf("got %+v, want confirmed: %v", c, approved)
			}
			k.say(`{"type":"tool_execution_end","toolCallId":"t1","toolName":"bash","result":{"content":[]},"isError":false}`)
			n.finishes(asked, k, "ok")
		})
	}
}

func TestASelectBetweenAllowAndBlockIsAnApproval(t *testing.T) {
	for _, tt := range []struct {
		options  string
		decision core.ApprovalDecided
		want     string
	}{
		{`["Allow","Block"]`, core.ApprovalDecided{Approved: true}, "Allow"},
		{`["Allow","Block"]`, core.ApprovalDecided{}, "Block"},
		{`["Yes, once","Always allow","No"]`, core.ApprovalDecided{Approved: true}, "Yes, once"},
		{`["Yes, once","Always allow","No"]`, core.ApprovalDecided{Approved: true, All: true}, "Always allow"},
		{`["Approve","Reject"]`, core.ApprovalDecided{Approved: true, All: true}, "Approve"},
	} {
		play(t, pirpc.Options{}, func(n *nursery) {
			asked, k := n.ask(hello()), <-n.kids
			k.prompted()
			k.say(`{"type":"extension_ui_request","id":"u1","method":"select","title":"Allow it?","options":` + tt.options + `}`)
			if requested := bodies[core.ApprovalRequested](n, asked); len(requested) != 1 || requested[0].ID != "u1" || requested[0].Name != "Allow it?" {
				t.Fatalf("%s: got %+v, want an approval", tt.options, requested)
			}
			tt.decision.ID = "u1"
			if err := n.user.Decide(t.Context(), asked.ID(), tt.decision); err != nil {
				t.Fatal(err)
			}
			if c := k.next("extension_ui_response"); c.Value == nil || *c.Value != tt.want {
				t.Errorf("%s: got %+v, want %s", tt.options, c, tt.want)
			}
			n.finishes(asked, k, "ok")
		})
	}
}

func TestASelectWhoseOptionsMayMeanMoreIsAQuestion(t *testing.T) {
	for _, options := range []string{
		`["Allow once","Never ask again","Deny"]`, `["Yes","Stop asking, always allow","No"]`, `["Allow","Deny","Always deny"]`,
		`["Approve","Reject","Reject and stop"]`, `["Allow","Approve","Deny"]`, `["Always allow","No"]`, `["Yes","Yes"]`, `["Accept all edits","Cancel"]`,
	} {
		play(t, pirpc.Options{}, func(n *nursery) {
			asked, k := n.ask(hello()), <-n.kids
			k.prompted()
			k.say(`{"type":"extension_ui_request","id":"u1","method":"select","title":"Allow it?","options":` + options + `}`)
			if requested := bodies[core.ApprovalRequested](n, asked); len(requested) > 0 {
				t.Errorf("%s: got %+v, want a question", options, requested)
			}
			if qs := n.pending(); len(qs) != 1 || qs[0].Text != "Allow it?" {
				t.Errorf("%s: got the questions %+v, want one", options, qs)
			}
			n.finishes(asked, k, "ok")
		})
	}
}

// pending returns the questions that wait.
func (n *nursery) pending() []question.Question {
	n.Helper()
	synctest.Wait()
	return n.hub.Questions(core.Principal{ID: "user", Operator: true})
}

func TestOtherDialogsAreQuestions(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		for i, tt := range []struct {
			dialog  string
			text    string
			options int
			reply   core.Reply
			want    string
		}{
			{`"method":"select","title":"Which?","options":["red","green"]`, "Which?", 2, core.Reply{Selected: []string{"green"}}, "green"},
			{`"method":"input","title":"Name?","placeholder":"a word"`, "Name?\n\n(a word)", 0, core.Reply{Text: "Ada"}, "Ada"},
			{`"method":"editor","title":"Edit","prefill":"a\nb"`, "Edit\n\na\nb", 0, core.Reply{Text: "a\nc"}, "a\nc"},
			{`"method":"input","title":"Dismissed?"`, "Dismissed?", 0, core.Reply{Dismissed: true}, ""},
		} {
			k.say(`{"type":"extension_ui_request","id":"u` + string(rune('0'+i)) + `",` + tt.dialog + `}`)
			qs := n.pending()
			if len(qs) != 1 || qs[0].Text != tt.text || len(qs[0].Options) != tt.options {
				t.Fatalf("got %+v, want %q with %d options", qs, tt.text, tt.options)
			}
			tt.reply.Question = qs[0].ID
			if _, err := n.user.AnswerQuestion(t.Context(), tt.reply); err != nil {
				t.Fatal(err)
			}
			c := k.next("extension_ui_response")
			if tt.want == "" && !c.Cancelled || tt.want != "" && (c.Value == nil || *c.Value != tt.want) {
				t.Errorf("got %+v, want %q", c, tt.want)
			}
		}
		n.finishes(asked, k, "ok")
	})
}

func TestAQuestionThatNobodyIsShownIsCancelled(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		n.user.UnwatchQuestions(nil)
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"extension_ui_request","id":"u1","method":"input","title":"Name?"}`)
		if c := k.next("extension_ui_response"); c.ID != "u1" || !c.Cancelled {
			t.Errorf("got %+v, want it cancelled at once", c)
		}
		if got := n.counts.of("pi-rpc.dialog.unasked"); got != 1 {
			t.Errorf("got %d counted, want 1", got)
		}
		n.finishes(asked, k, "ok")
	})
}

func TestADialogThatTimesOutIsWithdrawn(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(
			`{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Sure?","message":"","timeout":5000}`,
			`{"type":"extension_ui_request","id":"u2","method":"input","title":"Name?","timeout":5000}`,
		)
		if n.pending(); len(asked.Approvals()) != 1 {
			t.Fatalf("got %v, want an approval", asked.Approvals())
		}
		time.Sleep(5 * time.Second)
		if qs := n.pending(); len(qs) > 0 || len(asked.Approvals()) > 0 {
			t.Errorf("got %v and %v, want them withdrawn", qs, asked.Approvals())
		}
		if c := k.next("extension_ui_response"); c.ID != "u2" || !c.Cancelled {
			t.Errorf("got %+v, want the question cancelled", c)
		}
		if states := bodies[core.ToolState](n, asked); len(states) != 1 || states[0].State != core.ToolTimeout {
			t.Errorf("got %+v, want a timeout", states)
		}
		n.finishes(asked, k, "ok")
	})
}

func TestDialogsThatAreOpenAtTheEndAreCancelled(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"extension_ui_request","id":"u1","method":"confirm","title":"Sure?"}`, `{"type":"extension_ui_request","id":"u2","method":"input","title":"Name?"}`)
		n.pending()
		n.finishes(asked, k, "ok")
		got := map[string]bool{}
		for range 2 {
			c := k.next("extension_ui_response")
			got[c.ID] = c.Cancelled
		}
		if !got["u1"] || !got["u2"] {
			t.Errorf("got %v, want both cancelled", got)
		}
	})
}

func TestADialogWithoutATaskIsCancelled(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		k := <-n.kids
		k.say(`{"type":"extension_ui_request","id":"u0","method":"confirm","title":"At the start?"}`, `{"type":"extension_ui_request","id":"u1","method":"setStatus"}`)
		if c := k.next("extension_ui_response"); c.ID != "u0" || !c.Cancelled {
			t.Errorf("got %+v, want it cancelled", c)
		}
		if got := n.counts.of("pi-rpc.dialog.unasked"); got != 1 {
			t.Errorf("got %d counted, want 1", got)
		}
	})
}

func TestWhatAnExtensionShowsIsForeign(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.say(`{"type":"extension_ui_request","id":"u1","method":"notify","message":"blocked","notifyType":"warning"}`, `{"type":"queue_update","steering":["`+strings.Repeat("x", 70<<10)+`"],"followUp":[]}`)
		n.finishes(asked, k, "ok")
		frames := bodies[core.ForeignFrame](n, asked)
		if len(frames) != 2 || frames[0].Name != "extension_ui_request.notify" || frames[1].Name != "queue_update" || n.counts.of("pi-rpc.foreign.too_large") != 1 {
			t.Errorf("got %+v, want both, one of them by its name", frames)
		}
	})
}
