package coven_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestARequestReachesTheAgentAndItsAnswerTheRequester(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a", "token_usage", "tool_states")
		q := ask(t, h)
		task := q.open(core.Request{
			To: core.ToAgent("a"), Thread: "th", Content: "read it", Attachments: []core.File{{Name: "f", MediaType: "text/plain", Data: []byte("x")}},
		})
		p := a.prompt()
		want := &pb.SendMessage{
			RequestId: string(task.ID()), ThreadId: "th", Sender: "asker", Content: "read it",
			Attachments: []*pb.FileAttachment{{Filename: "f", MimeType: "text/plain", Data: []byte("x")}},
		}
		if diff := cmp.Diff(want, p, protocmp.Transform()); diff != "" {
			t.Errorf("SendMessage (-want +got):\n%s", diff)
		}
		synctest.Wait()
		if got := task.Receipt().Stage; got != core.StageDelivered {
			t.Errorf("receipt: got %s, want delivered", got)
		}
		id := p.GetRequestId()
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_SessionInit{SessionInit: &pb.SessionInit{SessionId: "s"}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_Thinking{Thinking: "thinking..."}})
		a.text(id, "It ")
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_ToolUse{ToolUse: &pb.ToolUse{Id: "t1", Name: "read", InputJson: "{}"}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_ToolState{ToolState: &pb.ToolStateUpdate{Id: "t1", State: pb.ToolState_TOOL_STATE_RUNNING}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_ToolResult{ToolResult: &pb.ToolResult{Id: "t1", Output: "x"}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_Usage{Usage: &pb.TokenUsage{InputTokens: 10, OutputTokens: 5}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_Usage{Usage: &pb.TokenUsage{InputTokens: 100, OutputTokens: 50}}})
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_File{File: &pb.FileData{Filename: "out", MimeType: "a/b", Data: []byte{7}}}})
		a.text(id, "says x.")
		a.done(id, "It says x.")
		q.until(task, core.KindDone)
		wantKinds := "opened assigned accepted session_started thinking text tool_call tool_state tool_result usage usage file text done"
		if got := kinds(task); got != wantKinds {
			t.Errorf("events:\n got %s\nwant %s", got, wantKinds)
		}
		wantAnswer := core.Answer{
			Text: "It says x.", Files: []core.File{{Name: "out", MediaType: "a/b", Data: []byte{7}}}, Agent: "a", End: core.KindDone,
			Usage: core.Usage{Input: 110, Output: 55}, TokensUsed: 165,
		}
		if diff := cmp.Diff(wantAnswer, task.Answer()); diff != "" {
			t.Errorf("answer (-want +got):\n%s", diff)
		}
		if got := task.Receipt().Stage; got < core.StageAcknowledged {
			t.Errorf("receipt: got %s, want acknowledged", got)
		}
		a.hangUp()
	})
}

func TestNoChunkIsDroppedHoweverFastTheAgentSends(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "talk")
		id := a.prompt().GetRequestId()
		var want strings.Builder
		for i := range 5000 {
			chunk := strings.Repeat(string(rune('a'+i%26)), 1+i%7)
			want.WriteString(chunk)
			a.text(id, chunk)
		}
		a.done(id, "")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != want.String() {
			t.Errorf("got %d bytes of text, want %d in the order they were sent", len(got), want.Len())
		}
		a.hangUp()
	})
}

func TestAnErrorFollowedByDoneEndsTheTaskOnce(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		a.text(id, "partial")
		a.fail(id, "Request timed out after 300 seconds")
		a.text(id, "more")
		a.done(id, "Error: Request timed out after 300 seconds")
		e := q.until(task, core.KindFailed)
		if f := e.Body.(core.Failed).Fault; f.Code != core.CodeInternal || f.Message != "Request timed out after 300 seconds" {
			t.Errorf("fault: got %v, want the agent's own text", f)
		}
		synctest.Wait()
		if got, want := kinds(task), "opened assigned accepted text failed"; got != want {
			t.Errorf("events: got %s, want %s", got, want)
		}
		next := q.question("a", "and now?")
		p := a.prompt()
		a.done(p.GetRequestId(), "fine")
		q.until(next, core.KindDone)
		a.hangUp()
	})
}

func TestErrorCodesAreReadOnlyFromAgentsThatDeclaredFaultCodes(t *testing.T) {
	for name, c := range map[string]struct {
		features []string
		want     core.Fault
	}{
		"declared": {[]string{"fault_codes"}, core.Fault{Code: core.CodeInvalid, Message: "no"}},
		"not":      {nil, core.Fault{Code: core.CodeInternal, Message: "invalid: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				a, _ := join(t, h, coven.Options{}, "a", c.features...)
				q := ask(t, h)
				task := q.question("a", "x")
				a.fail(a.prompt().GetRequestId(), "invalid: no")
				got := q.until(task, core.KindFailed).Body.(core.Failed).Fault
				if got.Code != c.want.Code || got.Message != c.want.Message {
					t.Errorf("got %v, want %v", got, &c.want)
				}
				a.hangUp()
			})
		})
	}
}

func TestAReportOnAnotherAgentsRequestIsRefused(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		b, _ := join(t, h, coven.Options{}, "b")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		b.text(id, "intruder")
		b.done(id, "intruder")
		b.done("no such request", "")
		synctest.Wait()
		a.done(id, "mine")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != "mine" {
			t.Errorf("answer: got %q, want %q", got, "mine")
		}
		if got := h.Counters()["report.not_held"]; got != 3 {
			t.Errorf("refused reports: got %d, want 3", got)
		}
		a.hangUp()
		b.hangUp()
	})
}

func TestALostConnectionFailsTheRequestAtOnce(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		a.text(a.prompt().GetRequestId(), "half")
		a.hangUp()
		f := q.until(task, core.KindFailed).Body.(core.Failed).Fault
		if f.Code != core.CodeUnreachable || !f.Retryable {
			t.Errorf("fault: got %+v, want unreachable, retryable", f)
		}
	})
}

func TestALostSessionWithoutFurtherEventsFailsTheRequest(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		a.respond(orphaned(a.prompt().GetRequestId()))
		lost := q.until(task, core.KindSessionLost)
		end := q.until(task, core.KindFailed)
		f := end.Body.(core.Failed).Fault
		if f.Code != core.CodeUnreachable || !f.Retryable || !strings.Contains(f.Message, "Session expired") {
			t.Errorf("fault: got %+v, want unreachable, retryable, with the agent's reason", f)
		}
		if got := end.At.Sub(lost.At); got != 2*time.Second {
			t.Errorf("failed after %v, want 2s", got)
		}
		a.hangUp()
	})
}

func TestALostSessionWithFurtherEventsContinues(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		a.respond(orphaned(id))
		after(1900 * time.Millisecond)
		a.respond(orphaned(id)) // the grace starts again
		after(1900 * time.Millisecond)
		a.text(id, "back")
		after(time.Minute)
		a.done(id, "")
		q.until(task, core.KindDone)
		if got := task.Answer().Text; got != "back" {
			t.Errorf("answer: got %q, want %q", got, "back")
		}
		a.hangUp()
	})
}

func TestAnAgentMayLeaveDuringTheGraceOfALostSession(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		a.respond(orphaned(a.prompt().GetRequestId()))
		q.until(task, core.KindSessionLost)
		a.hangUp()
		q.until(task, core.KindFailed)
	})
}

func orphaned(request string) *pb.MessageResponse {
	return &pb.MessageResponse{RequestId: request, Event: &pb.MessageResponse_SessionOrphaned{SessionOrphaned: &pb.SessionOrphaned{Reason: "Session expired"}}}
}

func TestAnUnknownEventReachesTheReadersOfTheTask(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		m := &pb.MessageResponse{RequestId: id}
		m.ProtoReflect().SetUnknown(protowire.AppendBytes(protowire.AppendTag(nil, 42, protowire.BytesType), []byte("new")))
		a.respond(m)
		e := q.until(task, core.KindForeign)
		if diff := cmp.Diff(core.ForeignFrame{Dialect: "coven", Name: "event 42"}, e.Body); diff != "" {
			t.Errorf("event (-want +got):\n%s", diff)
		}
		kept := new(pb.MessageResponse)
		if e.Foreign == nil || proto.Unmarshal(e.Foreign.Wire, kept) != nil {
			t.Fatalf("got foreign %v, want the bytes of the response", e.Foreign)
		}
		kept.RequestId = id
		if diff := cmp.Diff(m, kept, protocmp.Transform()); diff != "" {
			t.Errorf("kept (-want +got):\n%s", diff)
		}
		a.done(id, "")
		q.until(task, core.KindDone)
		a.hangUp()
	})
}

func TestARequestThatIsTooLargeFailsAndTheAgentStaysConnected(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		big := q.open(core.Request{To: core.ToAgent("a"), Content: "look", Attachments: []core.File{{Name: "big", Data: make([]byte, 4<<20)}}})
		f := q.until(big, core.KindFailed).Body.(core.Failed).Fault
		if f.Code != core.CodeTooLarge || !strings.Contains(f.Message, "4194304") {
			t.Errorf("fault: got %v, want too_large that names the limit", f)
		}
		small := q.question("a", "are you there?")
		a.done(a.prompt().GetRequestId(), "yes")
		q.until(small, core.KindDone)
		a.hangUp()
	})
}

func TestARequestOfAKindOfAnotherDialectIsRefused(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.open(core.Request{To: core.ToAgent("a"), Foreign: &core.Foreign{Dialect: "acp", JSON: []byte(`{"kind":"dance"}`)}})
		if f := q.until(task, core.KindFailed).Body.(core.Failed).Fault; f.Code != core.CodeUnknownKind {
			t.Errorf("fault: got %v, want unknown_kind", f)
		}
		if got := h.Counters()["coven.refused.foreign"]; got != 1 {
			t.Errorf("counted: got %d, want 1", got)
		}
		a.hangUp()
	})
}

func TestOnlyAnAgentThatAsksIsToldThatTheSenderProvedWhoItIs(t *testing.T) {
	for _, feature := range []string{"sender_proof", "token_usage"} {
		bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
			a, _ := join(t, h, coven.Options{}, "a", feature)
			for who, proved := range map[string]bool{"alice": true, "local": false} {
				s := h.Connect(hub.Identity{Principal: core.Principal{ID: who, Authenticated: proved}})
				defer s.Close(nil)
				task, err := s.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true})
				if err != nil {
					t.Fatal(err)
				}
				p := a.prompt()
				if got, want := wire.IsProven(p), proved && feature == "sender_proof"; got != want || p.GetSender() != who {
					t.Errorf("with %s, from %s: got it proven %v, want %v", feature, p.GetSender(), got, want)
				}
				if (!proved || feature != "sender_proof") && len(p.ProtoReflect().GetUnknown()) > 0 {
					t.Errorf("with %s: got fields that the protocol does not have", feature)
				}
				a.done(string(task.ID()), "")
			}
		})
	}
}
