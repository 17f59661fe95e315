package client_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

const options = `[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"ya","name":"Always","kind":"allow_always"},{"optionId":"n","name":"Reject","kind":"reject_once"},{"optionId":"na","name":"Never","kind":"reject_always"}]`

// permits asks for a permission.
func (p *peer) permits(id, session, tool, options string) {
	p.Helper()
	p.says(`{"jsonrpc":"2.0","id":%s,"method":"session/request_permission","params":{"sessionId":%q,"toolCall":%s,"options":%s}}`, id, session, tool, options)
}

func TestADecisionIsTheOptionOfItsKind(t *testing.T) {
	for _, c := range []struct {
		decision core.ApprovalDecided
		options  string
		want     string
	}{
		{core.ApprovalDecided{Approved: true}, options, `{"outcome":{"outcome":"selected","optionId":"y"}}`},
		{core.ApprovalDecided{Approved: true, All: true}, options, `{"outcome":{"outcome":"selected","optionId":"ya"}}`},
		{core.ApprovalDecided{}, options, `{"outcome":{"outcome":"selected","optionId":"n"}}`},
		{core.ApprovalDecided{Approved: true, Option: "ya"}, options, `{"outcome":{"outcome":"selected","optionId":"ya"}}`},
		{core.ApprovalDecided{Option: "ya"}, options, `{"outcome":{"outcome":"selected","optionId":"n"}}`}, // it contradicts the decision
		{core.ApprovalDecided{Option: "of another agent"}, options, `{"outcome":{"outcome":"selected","optionId":"n"}}`},
		{core.ApprovalDecided{Approved: true, All: true}, `[{"optionId":"y","name":"Allow","kind":"allow_once"}]`, `{"outcome":{"outcome":"selected","optionId":"y"}}`},
		{core.ApprovalDecided{}, `[{"optionId":"y","name":"Allow","kind":"allow_once"}]`, `{"outcome":{"outcome":"cancelled"}}`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			// The title and the input are those of an earlier update; the id of the first request is 0.
			p.updates("s1", `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write","rawInput":{"path":"a"}}`)
			p.permits("0", "s1", `{"toolCallId":"t1"}`, c.options)
			synctest.Wait()
			c.decision.ID = "t1"
			if err := s.user.Decide(hub.NoWait, asked.ID(), c.decision); err != nil {
				s.Fatal(err)
			}
			if got := p.answers("0"); got != c.want {
				s.Errorf("%+v: the agent got %s, want %s", c.decision, got, c.want)
			}
			p.updates("s1", `{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`)
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			got := s.told(asked)
			if want := `approval_requested {"id":"t1","name":"Write","input":"{\"path\":\"a\"}","input_sha256":"fde64ffe7a4a0bbd5d2fe2c294b795808c14bcb57a1d08f1c9dcd59871a020f4"} + {"toolCall":{"toolCallId":"t1"},"options":` + c.options + `}`; len(got) != 5 || got[1] != want {
				s.Errorf("got %q, want the second to be %s", got, want)
			}
			_ = stop()
		})
	}
}

func TestAPermissionShowsTheChangeWhereThereIsNoInput(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.permits("0", "s1", `{"toolCallId":"t1","title":"Writing to a","content":[{"type":"diff","path":"/w/a","oldText":"","newText":"new\n"}]}`, options)
		synctest.Wait()
		open := asked.Approvals()
		if len(open) != 1 || open[0].Name != "Writing to a" || open[0].Input != `{"diff":"--- /w/a\n+++ /w/a\n@@ -0,0 +1,1 @@\n+new\n"}` {
			s.Errorf("got %+v, want the change to be decided on", open)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		synctest.Wait()
		_ = stop()
	})
}

func TestTwoPermissionsOfOneToolCallAreTwoApprovals(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.permits(`"a"`, "s1", `{"toolCallId":"t1","title":"One"}`, options)
		p.permits(`"b"`, "s1", `{"toolCallId":"t1","title":"Two"}`, options)
		p.permits(`"a"`, "s1", `{"toolCallId":"t1"}`, options)
		if got, want := p.answers(`"a"`), `id: a request with the id "a" waits for its answer already (code -32600)`; got != want {
			s.Errorf("got %s, want %s", got, want)
		}
		synctest.Wait()
		if err := s.user.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "t1#2", Approved: true}); err != nil {
			s.Fatal(err)
		}
		if got := p.answers(`"b"`); got != `{"outcome":{"outcome":"selected","optionId":"y"}}` {
			s.Errorf("got %s, want the second allowed", got)
		}
		// The agent does not want to know the other any more.
		p.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"a"}}`)
		if got := p.answers(`"a"`); got != `the request was cancelled (code -32800)` {
			s.Errorf("got %s, want the first cancelled", got)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		synctest.Wait()
		if n := len(s.hub.ApprovalsHere(s.user.Identity().Principal)); n != 0 {
			s.Errorf("%d approvals are open, want none", n)
		}
		_ = stop()
	})
}

func TestACancelAnswersPermissionsAndWaitsForTheAgent(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.updates("s1", `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Write","status":"in_progress"}`)
		p.permits("0", "s1", `{"toolCallId":"t1"}`, options)
		synctest.Wait()
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			s.Fatal(err)
		}
		if m := p.wants("session/cancel"); string(m.Params.Raw()) != `{"sessionId":"s1"}` || m.ID != nil {
			s.Errorf("got %s, want the cancel of the session", m.Whole.Raw())
		}
		if got := p.answers("0"); got != `{"outcome":{"outcome":"cancelled"}}` {
			s.Errorf("got %s, want the permission cancelled", got)
		}
		p.permits("1", "s1", `{"toolCallId":"t2"}`, options) // it crosses the cancel
		if got := p.answers("1"); got != `{"outcome":{"outcome":"cancelled"}}` {
			s.Errorf("got %s, want the late permission cancelled", got)
		}
		synctest.Wait() // the turn has heard of the cancel, too
		p.text("s1", "what was left")
		p.replies(prompt, `{"stopReason":"cancelled"}`)
		got := s.told(asked)
		for i, want := range []string{
			`tool_call {"id":"t1","name":"Write","input":""}`, `tool_state {"id":"t1","state":"running"}`, `approval_requested {"id":"t1"`,
			`cancel_requested {"by":"user","reason":"enough"}`, `tool_state {"id":"t1","state":"cancelled"}`, `text {"text":"what was left"}`, `cancelled {"reason":"enough"}`,
		} {
			if i >= len(got) || len(got[i]) < len(want) || got[i][:len(want)] != want {
				s.Fatalf("got %q, want event %d to be %s", got, i, want)
			}
		}
		_ = stop()
	})
}

func TestACancelBeforeThePromptSendsNone(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.open(core.Request{Content: "x", Thread: "t"})
		begin := p.wants("session/new")
		if err := s.user.Cancel(asked.ID(), "never mind"); err != nil {
			s.Fatal(err)
		}
		p.wants("$/cancel_request")
		s.tells(asked, `cancel_requested {"by":"user","reason":"never mind"}`, `cancelled {"reason":"never mind"}`)
		p.replies(begin, `{"sessionId":"s1"}`)
		synctest.Wait()
		next := s.open(core.Request{Content: "y", Thread: "t"})
		p.begins("s2")
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(next, "done {}")
		_ = stop()
	})
}

func TestACancelBeforeTheFirstChunkIsStillACancel(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			s.Fatal(err)
		}
		p.wants("session/cancel")
		p.fails(prompt, -32603, "aborted") // against the protocol, as some agents do
		s.tells(asked, `cancel_requested {"by":"user","reason":"enough"}`, `cancelled {"reason":"enough"}`)
		if s.counted("editor.cancelled_by_error") != 1 {
			s.Error("the error was not counted")
		}
		_ = stop()
	})
}

func TestAnAgentThatIgnoresACancelLosesItsSession(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"close":{}}}`)
		asked := s.open(core.Request{Content: "x", Thread: "t"})
		p.begins("s1")
		stuck := p.wants("session/prompt")
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			s.Fatal(err)
		}
		p.wants("session/cancel")
		time.Sleep(hub.Limits{}.WithDefaults().CancelGrace + time.Second) // of the fake clock
		s.settle()
		if a := asked.Answer(); a.End != core.KindCancelled {
			s.Fatalf("got %s, want it cancelled after the grace", a.End)
		}
		next := s.open(core.Request{Content: "y", Thread: "t"})
		if m := p.wants("session/close"); string(m.Params.Raw()) != `{"sessionId":"s1"}` {
			s.Errorf("got %s, want the session closed", m.Params.Raw())
		}
		p.begins("s2")
		prompt := p.wants("session/prompt")
		p.text("s1", "of the turn that was given up")
		p.replies(stuck, `{"stopReason":"cancelled"}`)
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(next, `session_lost {"reason":"the agent did not end the turn before"}`, "done {}")
		_ = stop()
	})
}
