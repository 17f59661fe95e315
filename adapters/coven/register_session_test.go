package coven_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestTheFirstMessageMustBeRegisterAgent(t *testing.T) {
	for name, first := range map[string]*pb.AgentMessage{
		"a response":  {Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{RequestId: "r"}}},
		"a heartbeat": {Payload: &pb.AgentMessage_Heartbeat{Heartbeat: &pb.Heartbeat{}}},
		"nothing":     {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
				a := connect(t, h, coven.Options{})
				a.send(first)
				if r := a.expectEnd(); r.Code != int(codes.InvalidArgument) || r.Text != "first message must be RegisterAgent" {
					t.Errorf("got status %d %q, want INVALID_ARGUMENT %q", r.Code, r.Text, "first message must be RegisterAgent")
				}
			})
		})
	}
}

func TestAnAgentWithoutAnIDIsRejected(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a := connect(t, h, coven.Options{})
		a.register("")
		if r := a.expectEnd(); r.Code != int(codes.InvalidArgument) || r.Text != "agent_id is required" {
			t.Errorf("got status %d %q, want INVALID_ARGUMENT %q", r.Code, r.Text, "agent_id is required")
		}
	})
}

func TestAnInvalidAgentIDIsRejectedWithAReason(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a := connect(t, h, coven.Options{})
		a.register("capability:chat")
		if r := a.expectEnd(); r.Code != int(codes.InvalidArgument) || r.Text == "" {
			t.Errorf("got status %d %q, want INVALID_ARGUMENT with a reason", r.Code, r.Text)
		}
	})
}

func TestAStreamThatDoesNotRegisterInTimeIsClosed(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		start := time.Now()
		a := connect(t, h, coven.Options{})
		r := a.expectEnd()
		if r.Code != int(codes.DeadlineExceeded) {
			t.Errorf("got status %d %q, want DEADLINE_EXCEEDED", r.Code, r.Text)
		}
		if got := time.Since(start); got != 30*time.Second {
			t.Errorf("closed after %v, want 30s", got)
		}
	})
}

func TestARegisteredStreamMayBeSilent(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		after(time.Hour)
		if _, ok := h.Agent(core.Principal{Operator: true}, "a"); !ok {
			t.Error("the agent was disconnected after an hour of silence, want it connected")
		}
		a.hangUp()
		if _, ok := h.Agent(core.Principal{Operator: true}, "a"); ok {
			t.Error("the agent is connected after it has hung up, want it gone")
		}
	})
}

func TestAStreamThatEndsBeforeItRegistersEndsNormally(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a := connect(t, h, coven.Options{})
		a.conn.Close(link.Reason{Cause: link.Normal})
		if r := a.expectEnd(); r.Code != 0 {
			t.Errorf("got status %d %q, want OK", r.Code, r.Text)
		}
	})
}

func TestTheIDOfAConnectedAgentIsRefusedByStatus(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		first, _ := join(t, h, coven.Options{}, "twin")
		second := connect(t, h, coven.Options{})
		second.register("twin")
		if r := second.expectEnd(); r.Code != int(codes.AlreadyExists) || r.Text != "agent twin already registered" {
			t.Errorf("got status %d %q, want ALREADY_EXISTS %q", r.Code, r.Text, "agent twin already registered")
		}
		task := ask(t, h).question("twin", "still there?")
		p := first.prompt()
		first.done(p.GetRequestId(), "yes")
		synctest.Wait()
		if got := task.Answer().Text; got != "yes" {
			t.Errorf("the first twin: got answer %q, want %q", got, "yes")
		}
		first.hangUp()
	})
}

func TestAnAgentThatDeclaredRegistrationErrorGetsAFreeID(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		first, _ := join(t, h, coven.Options{}, "twin")
		next, _ := join(t, h, coven.Options{}, "twin-1")
		second := connect(t, h, coven.Options{})
		second.register("twin", "registration_error")
		second.expect(&pb.ServerMessage{Payload: &pb.ServerMessage_RegistrationError{
			RegistrationError: &pb.RegistrationError{Reason: "agent twin already registered", SuggestedId: "twin-2"},
		}})
		if r := second.expectEnd(); r.Code != 0 {
			t.Errorf("got status %d %q, want OK after the RegistrationError", r.Code, r.Text)
		}
		if _, err := second.conn.Receive(context.Background()); !errors.Is(err, io.EOF) {
			t.Errorf("after the RegistrationError: got %v, want EOF", err)
		}
		first.hangUp()
		next.hangUp()
	})
}

func TestTheSuggestedIDIsOneThatThePrincipalMayRegister(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		first, _ := join(t, h, coven.Options{}, "twin")
		next, _ := join(t, h, coven.Options{}, "twin-1")
		for _, c := range []struct{ allowed, suggested string }{{"twin*", "twin-2"}, {"twin", ""}} {
			second := connect(t, h, coven.Options{Principal: core.Principal{ID: "p", Authenticated: true, Credential: &core.Credential{Agents: []string{c.allowed}}}})
			second.register("twin", "registration_error")
			second.expect(&pb.ServerMessage{Payload: &pb.ServerMessage_RegistrationError{
				RegistrationError: &pb.RegistrationError{Reason: "agent twin already registered", SuggestedId: c.suggested},
			}})
			second.expectEnd()
		}
		first.hangUp()
		next.hangUp()
	})
}

func TestWelcomeHasEveryField(t *testing.T) {
	bubble(t, hub.Options{ID: "the-hub"}, func(t *testing.T, h *hub.Hub) {
		a, w := join(t, h, coven.Options{
			Principal: core.Principal{ID: "p-1", Authenticated: true, Credential: &core.Credential{Agents: []string{"a"}}}, MCPEndpoint: "http://127.0.0.1:8080/mcp",
			MCPToken: func(*hub.Session) (string, func()) { return "the token", func() {} },
			Secrets:  func(id core.AgentID) map[string]string { return map[string]string{"OWNER": string(id)} },
		}, "a")
		if len(w.GetInstanceId()) != 8 {
			t.Errorf("got instance_id %q, want 8 letters", w.GetInstanceId())
		}
		var tools []string
		for _, tool := range w.GetAvailableTools() {
			tools = append(tools, tool.GetName())
			if tool.GetDescription() == "" || tool.GetInputSchemaJson() == "" || tool.GetTimeoutSeconds() <= 0 {
				t.Errorf("tool %v: want a description, a schema and a timeout", tool)
			}
		}
		if diff := cmp.Diff([]string{"agents_list", "agent_ask", "agent_delegate", "agent_result", "agent_notify", "agent_cancel", "task_readers"}, tools); diff != "" {
			t.Errorf("tools (-want +got):\n%s", diff)
		}
		want := &pb.Welcome{
			ServerId: "the-hub", AgentId: "a", PrincipalId: "p-1", McpEndpoint: "http://127.0.0.1:8080/mcp", Secrets: map[string]string{"OWNER": "a"},
			InstanceId: w.GetInstanceId(), McpToken: "the token", AvailableTools: w.GetAvailableTools(),
		}
		if diff := cmp.Diff(want, w, protocmp.Transform()); diff != "" {
			t.Errorf("Welcome (-want +got):\n%s", diff)
		}
		status, _ := h.Agent(core.Principal{Operator: true}, "a")
		if got, want := string(status.Metadata["instance_id"]), `"`+w.GetInstanceId()+`"`; got != want {
			t.Errorf("instance_id of the card: got %s, want %s", got, want)
		}
		a.hangUp()
	})
}

func TestWelcomeComesBeforeTheFirstRequest(t *testing.T) {
	// An observer of the hub opens the request the moment the agent has joined.
	synctest.Test(t, func(t *testing.T) {
		observer := &joinObserver{joined: make(chan core.AgentID, 1)}
		h := newHub(t, hub.Options{Observer: observer})
		go func() {
			id := <-observer.joined
			s := h.Connect(hub.Identity{Principal: core.Principal{ID: "early"}})
			_, _ = s.Open(core.Request{To: core.ToAgent(id), Content: "quick"}, hub.OpenOptions{Keep: true})
			s.Close(nil)
		}()
		a, _ := join(t, h, coven.Options{}, "a")
		p := a.prompt()
		a.done(p.GetRequestId(), "")
		synctest.Wait()
		a.hangUp()
	})
}

func TestASecondRegistrationIsIgnoredAndCounted(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		a.register("b")
		synctest.Wait()
		if _, ok := h.Agent(core.Principal{Operator: true}, "b"); ok {
			t.Error("agent b has joined, want it ignored")
		}
		if _, ok := h.Agent(core.Principal{Operator: true}, "a"); !ok {
			t.Error("agent a was disconnected, want it connected")
		}
		if got := h.Counters()["coven.refused.second_register"]; got != 1 {
			t.Errorf("counter: got %d, want 1", got)
		}
		a.hangUp()
	})
}

func TestAMessageWithoutAPayloadOrEventIsRefused(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		task := q.question("a", "x")
		p := a.prompt()
		a.send(&pb.AgentMessage{})
		a.respond(&pb.MessageResponse{RequestId: p.GetRequestId()})
		a.done(p.GetRequestId(), "ok")
		q.until(task, core.KindDone)
		if got, want := kinds(task), "opened assigned accepted done"; got != want {
			t.Errorf("got events %q, want %q", got, want)
		}
		for _, name := range []string{"coven.refused.unset_payload", "coven.refused.unset_event"} {
			if got := h.Counters()[name]; got != 1 {
				t.Errorf("%s: got %d, want 1", name, got)
			}
		}
		a.hangUp()
	})
}

func TestAnAgentThatDeclaresMaxConcurrentGetsSeveralRequests(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		a, _ := join(t, h, coven.Options{}, "a", "max_concurrent=2")
		q := ask(t, h)
		tasks := []*task.Task{q.question("a", "1"), q.question("a", "2"), q.question("a", "3")}
		one, two := a.prompt(), a.prompt()
		synctest.Wait()
		if got := tasks[2].State(); got != task.Queued {
			t.Errorf("the third: got %v, want queued", got)
		}
		a.text(one.GetRequestId(), "a")
		a.text(two.GetRequestId(), "x")
		a.text(one.GetRequestId(), "b")
		a.done(two.GetRequestId(), "")
		three := a.prompt()
		a.done(one.GetRequestId(), "")
		a.done(three.GetRequestId(), "third")
		synctest.Wait()
		for i, want := range []string{"ab", "x", "third"} {
			if got := tasks[i].Answer().Text; got != want {
				t.Errorf("task %d: got %q, want %q", i+1, got, want)
			}
		}
		a.hangUp()
	})
}

func TestAnInstanceIDHasNoLettersThatLookAlike(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		seen := make(map[string]bool)
		for range 1000 {
			a, w := join(t, h, coven.Options{}, "a")
			a.hangUp()
			id := w.GetInstanceId()
			if len(id) != 8 {
				t.Fatalf("got %q, want 8 characters", id)
			}
			if i := strings.IndexAny(id, "0oO1lIi!"); i >= 0 {
				t.Fatalf("got %q, want no %q in it", id, id[i])
			}
			if seen[id] {
				t.Fatalf("got %q twice", id)
			}
			seen[id] = true
		}
	})
}
