package coven

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// samples has one event of every kind. Opened and foreign reach an agent as Assigned: a
// request with data, for which Coven has no field, is folded, and one that is a frame of
// another dialect is refused.
var samples = map[core.Kind]core.Body{
	core.KindOpened: core.Assigned{Agent: "a", Attempt: 1}, core.KindAssigned: core.Assigned{Agent: "other", Attempt: 1},
	core.KindAccepted: core.Accepted{}, core.KindSessionStarted: core.SessionStarted{}, core.KindSessionLost: core.SessionLost{},
	core.KindThinking: core.Thinking{}, core.KindText: core.Text{}, core.KindToolCall: core.ToolCall{}, core.KindToolState: core.ToolState{},
	core.KindToolResult: core.ToolResult{}, core.KindApprovalRequested: core.ApprovalRequested{}, core.KindApprovalDecided: core.ApprovalDecided{},
	core.KindQuestionAsked: core.QuestionAsked{}, core.KindQuestionAnswered: core.QuestionAnswered{},
	core.KindInjected: core.Injected{ID: "i"}, core.KindInjectionAnswered: core.InjectionAnswered{}, core.KindFile: core.File{}, core.KindUsage: core.Usage{},
	core.KindRetrying: core.Retrying{}, core.KindCancelRequested: core.CancelRequested{}, core.KindForeign: core.Assigned{Agent: "a", Attempt: 1},
	core.KindDone: core.Done{}, core.KindFailed: core.Failed{Fault: core.NewFault(core.CodeInternal, "broke")}, core.KindCancelled: core.Cancelled{},
}

// No kind that a Coven agent reports is folded or refused: messages without a kind are
// counted as coven.refused.*.
func TestFoldedAndRefusedEventsAreCounted(t *testing.T) {
	for _, k := range core.Kinds() {
		if how := Translation.FromAgent[k].How; how == core.Folded || how == core.Refused {
			t.Errorf("%s from an agent: got %s, and nothing counts it", k, how)
		}
		for name, declared := range map[string]core.Features{"all features": core.FeatureInjection | core.FeatureCancellation, "none": 0} {
			t.Run(k.String()+"/"+name, func(t *testing.T) {
				h := coretest.NewHub(t, hub.Options{})
				agent, requester := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "requester"}})
				defer requester.Close(nil)
				defer agent.Close(nil)
				card := core.Card{ID: "a", Dialect: Name, Features: declared}
				if err := agent.Join(card, hub.JoinOptions{}); err != nil {
					t.Fatal(err)
				}
				request := core.Request{To: core.ToAgent("a"), Content: "go", Data: json.RawMessage(`[1]`)}
				if k == core.KindForeign { // agents get foreign frames only as requests
					request.Content, request.Data, request.Foreign = "", nil, &core.Foreign{Dialect: "other", JSON: json.RawMessage(`{}`)}
				}
				task, err := requester.Open(request, hub.OpenOptions{})
				if err != nil {
					t.Fatal(err)
				}
				conn, _ := coretest.Pipe[*pb.AgentMessage, *pb.ServerMessage](1)
				s := newSession(h, conn, &Options{})
				s.agent, s.card = agent, card
				body := samples[k]
				if body == nil {
					t.Fatalf("%s: got no sample, want one", k)
				}
				if err := (core.Event{Body: body}).DeliverToAgent(&taskSink{t.Context(), s, task}); err != nil {
					t.Fatal(err)
				}
				want := ""
				switch how := Translation.ToAgent[k].How; {
				case how == core.Folded, how == core.Refused:
					want = Name + "." + how.String() + "." + k.String()
				case declared == 0 && (k == core.KindInjected || k == core.KindCancelRequested):
					want = Name + ".refused." + k.String()
				}
				for name, n := range h.Counters() {
					if strings.HasPrefix(name, Name+".") && (name != want || n != 1) {
						t.Errorf("got %s counted %d times, want %q once", name, n, want)
					}
				}
				if want != "" && h.Counters()[want] != 1 {
					t.Errorf("%s: got %d, want 1", want, h.Counters()[want])
				}
			})
		}
	}
}
