package coven_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func cancelOf(request, reason string) *pb.ServerMessage {
	return &pb.ServerMessage{Payload: &pb.ServerMessage_CancelRequest{CancelRequest: &pb.CancelRequest{RequestId: request, Reason: proto.String(reason)}}}
}

func TestACancelReachesAnAgentThatDeclaredCancellation(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a", "cancellation")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		a.text(id, "Let me...")
		if err := q.s.Cancel(task.ID(), "user_requested"); err != nil {
			t.Fatal(err)
		}
		a.expect(cancelOf(id, "user_requested"))
		a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_Cancelled{Cancelled: &pb.Cancelled{Reason: "user_requested"}}})
		if got := q.until(task, core.KindCancelled).Body.(core.Cancelled).Reason; got != "user_requested" {
			t.Errorf("reason: got %q, want %q", got, "user_requested")
		}
		next := q.question("a", "y")
		a.done(a.prompt().GetRequestId(), "")
		q.until(next, core.KindDone)
		a.hangUp()
	})
}

func TestAnAgentIsNeverSentWhatItDidNotDeclare(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		if err := q.s.Inject(hub.NoWait, task.ID(), core.Injected{Content: "psst"}); !isFault(err, core.CodeUnsupported) {
			t.Errorf("inject: got %v, want an unsupported Fault", err)
		}
		if err := q.s.Cancel(task.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		q.until(task, core.KindCancelled)
		a.text(id, "going on regardless")
		a.done(id, "")
		next := q.question("a", "y")
		if got := a.prompt().GetContent(); got != "y" {
			t.Errorf("the next message: got content %q, want %q", got, "y")
		}
		a.done(string(next.ID()), "")
		q.until(next, core.KindDone)
		a.hangUp()
	})
}

func TestARequestThatEndedBeforeItWasSentIsNotSent(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		server, client := wired(0)
		a := &agent{t: t, conn: client, end: make(chan link.Reason, 1)}
		go func() { a.end <- coven.Serve(context.Background(), h, server, &coven.Options{}) }()
		a.register("a", "max_concurrent=4")
		a.receive() // Welcome
		q := ask(t, h)
		large := func(content string) *task.Task {
			return q.open(core.Request{To: core.ToAgent("a"), Content: content, Attachments: []core.File{{Data: make([]byte, 2<<20)}}})
		}
		// The agent reads nothing: the first request is being written, the second waits for
		// room in the queue, and the third is still in the hub.
		one, two := large("1"), large("2")
		synctest.Wait()
		three := q.question("a", "3")
		if err := q.s.Cancel(three.ID(), "never mind"); err != nil {
			t.Fatal(err)
		}
		q.until(three, core.KindCancelled)
		four := q.question("a", "4")
		for _, want := range []*task.Task{one, two, four} {
			if got := a.prompt().GetRequestId(); got != string(want.ID()) {
				t.Errorf("got request %s, want %s", got, want.ID())
			}
			a.done(string(want.ID()), "")
			q.until(want, core.KindDone)
		}
		synctest.Wait()
		status, _ := h.Agent(core.Principal{Operator: true}, "a")
		if got := status.Load.Active; got != 0 {
			t.Errorf("slots taken: got %d, want 0", got)
		}
		a.hangUp()
	})
}

func TestAnInjectionReachesTheAgentAndItsAnswerTheRequester(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a", "injection", "max_concurrent=2")
		q := ask(t, h)
		one, two := q.question("a", "x"), q.question("a", "y")
		a.prompt()
		a.prompt()
		in := core.Injected{ID: "inj1", Content: "Budget is 80% consumed.", Priority: core.InjectionImmediate, Source: "system"}
		for _, task := range []*task.Task{one, two} { // with the same id
			if err := q.s.Inject(hub.NoWait, task.ID(), in); err != nil {
				t.Fatal(err)
			}
		}
		first := a.receive().GetInjectContext()
		if first.GetInjectionId() != "inj1" || first.GetContent() != in.Content || first.GetSource() != "asker (system)" ||
			first.GetPriority() != pb.InjectionPriority_INJECTION_PRIORITY_IMMEDIATE {
			t.Errorf("got %v, want it as it was injected, by the asker", first)
		}
		second := a.receive().GetInjectContext()
		if second.GetInjectionId() == "inj1" {
			t.Error("both injections have the same id, so that an ack names neither")
		}
		a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: &pb.InjectionAck{
			InjectionId: second.GetInjectionId(), Accepted: false, Reason: proto.String("too long"),
		}}})
		got := q.until(two, core.KindInjectionAnswered).Body
		if want := (core.InjectionAnswered{ID: "inj1", Reason: "too long"}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: &pb.InjectionAck{InjectionId: "inj1", Accepted: true}}})
		got = q.until(one, core.KindInjectionAnswered).Body
		if want := (core.InjectionAnswered{ID: "inj1", Accepted: true}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: &pb.InjectionAck{InjectionId: "inj1", Accepted: true}}})
		synctest.Wait()
		if got := h.Counters()["coven.refused.injection_ack"]; got != 1 {
			t.Errorf("a second acknowledgement: got counter %d, want 1", got)
		}
		a.done(string(one.ID()), "")
		a.done(string(two.ID()), "")
		synctest.Wait()
		a.hangUp()
	})
}

func TestAnApprovalIsRequestedAndDecided(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.open(core.Request{To: core.ToAgent("a"), Content: "x", Deadline: time.Now().Add(time.Hour)})
		id := a.prompt().GetRequestId()
		request := func(tool string) {
			a.respond(&pb.MessageResponse{RequestId: id, Event: &pb.MessageResponse_ToolApprovalRequest{
				ToolApprovalRequest: &pb.ToolApprovalRequest{Id: tool, Name: "bash", InputJson: `{"cmd":"ls"}`},
			}})
		}
		decision := func(tool string, approved, all bool) *pb.ServerMessage {
			return &pb.ServerMessage{Payload: &pb.ServerMessage_ToolApproval{
				ToolApproval: &pb.ToolApprovalResponse{Id: tool, Approved: approved, ApproveAll: all},
			}}
		}
		request("t1")
		q.until(task, core.KindApprovalRequested)
		if err := q.s.Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "t1"}); err != nil {
			t.Fatal(err)
		}
		a.expect(decision("t1", false, false))
		request("t2")
		start := time.Now()
		a.expect(decision("t2", false, false)) // by the hub, after the timeout
		if got := time.Since(start); got != 300*time.Second {
			t.Errorf("the hub denied after %v, want 300s", got)
		}
		a.done(id, "")
		q.until(task, core.KindDone)
		a.hangUp()
	})
}

func TestANoticeIsARequestWhoseAnswerIsDropped(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		notice := q.open(core.Request{Intent: core.IntentNotify, To: core.ToAgent("a"), Notice: &core.Notice{Topic: "build.done"}})
		p := a.prompt()
		if got, want := p.GetContent(), "Notice (no answer is expected): build.done"; got != want {
			t.Errorf("content: got %q, want %q", got, want)
		}
		q.until(notice, core.KindDone)
		next := q.question("a", "x")
		a.text(p.GetRequestId(), "Thanks!")
		a.done(p.GetRequestId(), "Thanks!")
		if got := a.prompt().GetContent(); got != "x" {
			t.Errorf("after the notice: got %q, want %q", got, "x")
		}
		a.done(string(next.ID()), "")
		q.until(next, core.KindDone)
		if got := notice.Answer().Text; got != "" {
			t.Errorf("the answer to the notice: got %q, want it dropped", got)
		}
		a.hangUp()
	})
}

func TestAStoppingHubSendsShutdownOnceTheAgentHasFinished(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		idle, _ := join(t, h, coven.Options{}, "idle")
		q := ask(t, h)
		task := q.question("a", "x")
		id := a.prompt().GetRequestId()
		closed := make(chan error, 1)
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			closed <- h.Close(ctx, "maintenance")
		}()
		shutdown := &pb.ServerMessage{Payload: &pb.ServerMessage_Shutdown{Shutdown: &pb.Shutdown{Reason: "maintenance"}}}
		idle.expect(shutdown)
		synctest.Wait()
		a.text(id, "nearly")
		a.done(id, "")
		a.expect(shutdown)
		q.until(task, core.KindDone)
		if err := <-closed; err != nil {
			t.Errorf("close: got %v, want no error", err)
		}
		for _, agent := range []*agent{a, idle} {
			if r := agent.expectEnd(); r.Code != int(codes.Unavailable) {
				t.Errorf("got status %d %q, want UNAVAILABLE", r.Code, r.Text)
			}
		}
	})
}

func TestAStoppingHubSendsShutdownAfterTheLastQueuedRequest(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		for range 3 {
			q.question("a", "x")
		}
		first := a.prompt()
		closed := make(chan error, 1)
		go func() { closed <- h.Close(context.Background(), "maintenance") }()
		synctest.Wait()
		a.done(first.GetRequestId(), "")
		a.done(a.prompt().GetRequestId(), "")
		a.done(a.prompt().GetRequestId(), "")
		if a.receive().GetShutdown() == nil {
			t.Error("got no Shutdown after the last request")
		}
		if err := <-closed; err != nil {
			t.Errorf("close: got %v, want no error", err)
		}
		a.expectEnd()
	})
}

func TestAnAgentThatDoesNotFinishInTimeIsSentShutdown(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		a.prompt()
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = h.Close(ctx, "maintenance")
		}()
		if got := a.receive().GetShutdown(); got == nil {
			t.Error("got no Shutdown before the end")
		}
		q.until(task, core.KindFailed)
		a.expectEnd()
	})
}

func TestAHeartbeatIsASignOfLife(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		after(time.Minute)
		a.send(&pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{Heartbeat: &pb.Heartbeat{TimestampMs: 1}}})
		synctest.Wait()
		status, _ := h.Agent(core.Principal{Operator: true}, "a")
		if got, want := status.Load.LastSeen, time.Now(); !got.Equal(want) {
			t.Errorf("last seen: got %v, want %v", got, want)
		}
		a.hangUp()
	})
}
