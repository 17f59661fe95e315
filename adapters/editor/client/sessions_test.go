package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// turn answers one prompt of a thread and returns it.
func (s *served) turn(p *peer, session, thread, question, answer string) string {
	s.Helper()
	asked := s.open(core.Request{Content: question, Thread: core.ThreadID(thread)})
	var prompt string
	for prompt == "" {
		m := p.next()
		switch m.Method {
		case "session/new":
			p.replies(m, `{"sessionId":"`+session+`"}`)
		case "session/prompt":
			prompt = string(m.Params.Raw())
			p.text(session, answer)
			p.replies(m, `{"stopReason":"end_turn"}`)
		default:
			s.Fatalf("the agent got %s", m.Whole.Raw())
		}
	}
	s.settle()
	if a := asked.Answer(); a.End != core.KindDone {
		s.Fatalf("got %s (%v), want it done", a.End, a.Fault)
	}
	return prompt
}

// again ends the connection of the agent and runs it once more.
func (s *served) again(p *peer, capabilities string) (*peer, func() error) {
	s.Helper()
	p.dies()
	s.gone(<-p.ran)
	p, stop := s.run()
	p.hello(capabilities)
	<-s.ready
	return p, stop
}

func TestASessionIsResumedAfterARestartWhereTheAgentCan(t *testing.T) {
	for _, c := range []struct{ capabilities, method string }{
		{`{"loadSession":true,"sessionCapabilities":{"resume":{}}}`, "session/resume"},
		{`{"loadSession":true}`, "session/load"},
	} {
		serve(t, nil, func(s *served) {
			p, _ := s.start(c.capabilities)
			s.turn(p, "s1", "t", "first", "one")
			p, stop := s.again(p, c.capabilities)
			asked := s.open(core.Request{Content: "second", Thread: "t"})
			m := p.wants(c.method)
			if got, want := string(m.Params.Raw()), `{"sessionId":"s1","cwd":"/w","mcpServers":[]}`; got != want {
				s.Errorf("got %s, want %s", got, want)
			}
			if c.method == "session/load" { // the agent tells the conversation again
				p.updates("s1", `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"first"}}`)
				p.text("s1", "one")
				p.updates("s1", `{"sessionUpdate":"available_commands_update","availableCommands":[]}`)
				p.replies(m, `null`)
			} else {
				p.replies(m, `{}`)
			}
			prompt := p.wants("session/prompt")
			if got := string(prompt.Params.Get("prompt").Raw()); got != `[{"type":"text","text":"second"}]` {
				s.Errorf("got the prompt %s, want it without the history", got)
			}
			p.text("s1", "two")
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			got := strings.Join(s.told(asked), "\n")
			if !strings.HasSuffix(got, "text {\"text\":\"two\"}\ndone {}") || strings.Contains(got, `"one"`) || strings.Contains(got, "session_lost") {
				s.Errorf("got\n%s\nwant the second answer, and nothing of the first again", got)
			}
			if n := s.counted("editor.update_outside_turn"); n != 0 {
				s.Errorf("counted %d updates as lost, want none: the replay was expected", n)
			}
			_ = stop()
		})
	}
}

func TestASessionThatCannotBeResumedIsLostAndTheHistoryIsToldAgain(t *testing.T) {
	for _, c := range []struct {
		capabilities, reason string
		refuses              string
	}{
		{`{}`, "the agent was restarted and does not resume sessions", ""},
		{`{"loadSession":true}`, "the agent was restarted and could not continue the session: continue a session: the agent answered: unknown session", "session/load"},
	} {
		serve(t, nil, func(s *served) {
			p, _ := s.start(c.capabilities)
			s.turn(p, "s1", "t", "first", "one")
			p, stop := s.again(p, c.capabilities)
			asked := s.open(core.Request{Content: "second", Thread: "t"})
			if c.refuses != "" {
				p.fails(p.wants(c.refuses), -32002, "unknown session")
			}
			p.begins("s2")
			prompt := p.wants("session/prompt")
			blocks := string(prompt.Params.Get("prompt").Raw())
			if !strings.Contains(blocks, `[{\"role\":\"user\",\"text\":\"first\"},{\"role\":\"assistant\",\"agent\":\"a\",\"text\":\"one\"}]`) || !strings.HasSuffix(blocks, `{"type":"text","text":"second"}]`) {
				s.Errorf("got the prompt %s, want the history before the question", blocks)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.tells(asked, `session_lost {"reason":"`+c.reason+`"}`, "done {}")
			_ = stop()
		})
	}
}

func TestASessionThatTheAgentForgetsIsReplacedInTheNextTurn(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		forgotten := s.open(core.Request{Content: "second", Thread: "t"})
		p.fails(p.wants("session/prompt"), -32002, "no such session")
		s.tells(forgotten, `failed {"fault":{"code":"internal","message":"the prompt: the agent answered: no such session","peer_code":"-32002"}}`)
		asked := s.open(core.Request{Content: "third", Thread: "t"})
		p.begins("s2")
		prompt := p.wants("session/prompt")
		if blocks := string(prompt.Params.Get("prompt").Raw()); !strings.Contains(blocks, `\"text\":\"one\"`) {
			s.Errorf("got the prompt %s, want the history before the question", blocks)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, `session_lost {"reason":"the agent does not know the session any more"}`, "done {}")
		_ = stop()
	})
}

func TestASessionOutlivesTheHubInItsLog(t *testing.T) {
	log := &coretest.MemoryLog{}
	keep := func(o *client.Options) { o.Sessions = log }
	serve(t, keep, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		_ = stop()
	})
	serve(t, keep, func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"resume":{}}}`)
		asked := s.open(core.Request{Content: "second", Thread: "t"})
		m := p.wants("session/resume")
		if id, _ := m.Params.Get("sessionId").Text(); id != "s1" {
			s.Errorf("got %s, want the session of the thread resumed", m.Params.Raw())
		}
		p.replies(m, `{}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(asked, "done {}")
		_ = stop()
	})
}

func TestAnAgentDoesNotContinueTheSessionsOfAnother(t *testing.T) {
	log := &coretest.MemoryLog{}
	as := func(id core.AgentID) func(*client.Options) {
		return func(o *client.Options) { o.Agent, o.Sessions = id, log }
	}
	serve(t, as("one"), func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		_ = stop()
	})
	serve(t, as("two"), func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"resume":{}}}`)
		asked := s.open(core.Request{Content: "second", Thread: "t"})
		m := p.next()
		if m.Method != "session/new" {
			s.Errorf("the other agent got %s, want a session of its own", m.Whole.Raw())
		}
		p.replies(m, `{"sessionId":"s2"}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(asked, "done {}")
		_ = stop()
	})
}

func TestAThreadOfAnotherRequesterIsAnotherSession(t *testing.T) {
	log := &coretest.MemoryLog{}
	keep := func(o *client.Options) { o.Sessions = log }
	const capabilities = `{"sessionCapabilities":{"resume":{}}}`
	// asks opens a task in the thread of all as somebody who has proved who they are.
	asks := func(s *served, who string) *task.Task {
		session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: who, Authenticated: true}, Dialect: "test"})
		before := s.stop
		s.stop = func() {
			session.Close(nil)
			before()
		}
		asked, err := session.Open(core.Request{To: core.ToAgent("a"), Content: "from " + who, Thread: "t"}, hub.OpenOptions{Unwatched: true})
		if err != nil {
			s.Fatal(err)
		}
		return asked
	}
	prompted := func(s *served, p *peer, session string) {
		s.Helper()
		m := p.wants("session/prompt")
		if got, _ := m.Params.Get("sessionId").Text(); got != session {
			s.Errorf("the prompt went to the session %s, want %s", got, session)
		}
		p.replies(m, `{"stopReason":"end_turn"}`)
		synctest.Wait()
	}
	serve(t, keep, func(s *served) {
		p, stop := s.start(capabilities)
		asks(s, "ann")
		p.begins("s1")
		prompted(s, p, "s1")
		asks(s, "bob")
		p.begins("s2")
		prompted(s, p, "s2")
		asks(s, "ann")
		prompted(s, p, "s1")
		_ = stop()
	})
	serve(t, keep, func(s *served) { // after a restart of the hub
		p, stop := s.start(capabilities)
		asks(s, "ann")
		m := p.wants("session/resume")
		if got, _ := m.Params.Get("sessionId").Text(); got != "s1" {
			s.Errorf("the session %s was resumed, want s1, that of the requester", got)
		}
		p.replies(m, `{}`)
		prompted(s, p, "s1")
		_ = stop()
	})
}

// flaky is a log whose first reading fails after its records.
type flaky struct {
	coretest.MemoryLog
	read int
}

func (f *flaky) Replay(ctx context.Context, yield func(time.Time, []byte) bool) error {
	err := f.MemoryLog.Replay(ctx, yield)
	if f.read++; f.read == 1 {
		return errors.New("disk on fire")
	}
	return err
}

func TestALogThatCouldNotBeReadIsReadAgain(t *testing.T) {
	log := &flaky{}
	for _, r := range []string{`{"thread":"t","session":"s1"}`, `{"thread":"u","session":"s2"}`} {
		if err := log.Append(t.Context(), []byte(r)); err != nil {
			t.Fatal(err)
		}
	}
	const capabilities = `{"sessionCapabilities":{"resume":{}}}`
	serve(t, func(o *client.Options) { o.Sessions = log }, func(s *served) {
		p, _ := s.start(capabilities)
		s.turn(p, "s3", "t", "first", "one") // fails the test unless it begins a session
		p, stop := s.again(p, capabilities)
		for thread, want := range map[core.ThreadID]string{"t": "s3", "u": "s2"} {
			asked := s.open(core.Request{Content: "again", Thread: thread})
			m := p.wants("session/resume")
			if got, _ := m.Params.Get("sessionId").Text(); got != want {
				s.Errorf("the thread %s resumed %s, want %s", thread, got, want)
			}
			p.replies(m, `{}`)
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.wait(asked)
		}
		_ = stop()
	})
}

func TestATaskWithoutAThreadHasASessionOfItsOwnThatIsClosed(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"close":{}}}`)
		for _, id := range []string{"s1", "s2"} {
			asked := s.ask("x")
			p.begins(id)
			p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
			s.tells(asked, "done {}")
			m := p.wants("session/close")
			if got, _ := m.Params.Get("sessionId").Text(); got != id {
				s.Errorf("got %s closed, want %s", got, id)
			}
			p.replies(m, `{}`)
		}
		_ = stop()
	})
}

func TestWhatOthersSaidInTheThreadMeanwhileIsToldFirst(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		other := s.other("b", "from b")
		s.wait(other("t", "between"))
		prompt := s.turn(p, "s1", "t", "third", "three")
		if !strings.Contains(prompt, `[{\"role\":\"user\",\"text\":\"between\"},{\"role\":\"assistant\",\"agent\":\"b\",\"text\":\"from b\"}]`) || strings.Contains(prompt, "first") {
			s.Errorf("got the prompt %s, want the turn of the other agent alone before the question", prompt)
		}
		_ = stop()
	})
}

func TestTheAgentGetsTheMCPServersThatItCanUse(t *testing.T) {
	servers := []wire.MCPServer{
		{Name: "files", Command: "npx", Args: []string{"-y", "files"}, Env: []wire.Variable{{Name: "A", Value: "b"}}},
		{Name: "search", URL: "https://example.com/mcp", Headers: []wire.Variable{{Name: "Authorization", Value: "Bearer x"}}},
	}
	const stdio = `{"name":"files","command":"npx","args":["-y","files"],"env":[{"name":"A","value":"b"}]}`
	const http = `{"type":"http","name":"search","url":"https://example.com/mcp","headers":[{"name":"Authorization","value":"Bearer x"}]}`
	for _, c := range []struct {
		capabilities, want string
		left               int
	}{
		{`{"mcpCapabilities":{"http":true,"sse":false}}`, `[` + stdio + `,` + http + `]`, 0},
		{`{}`, `[` + stdio + `]`, 1},
	} {
		serve(t, func(o *client.Options) { o.MCPServers = func(core.ThreadID) []wire.MCPServer { return servers } }, func(s *served) {
			p, stop := s.start(c.capabilities)
			s.ask("x")
			m := p.wants("session/new")
			if got := string(m.Params.Get("mcpServers").Raw()); got != c.want || s.counted("editor.mcp_server_left_out") != c.left {
				s.Errorf("got %s and %d left out, want %s and %d", got, s.counted("editor.mcp_server_left_out"), c.want, c.left)
			}
			p.fails(m, -32603, "no")
			synctest.Wait()
			_ = stop()
		})
	}
}

func TestTwoSessionsWithOneIDAreNotMixedUp(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		first := s.open(core.Request{Content: "1", Thread: "a"})
		p.begins("s1")
		prompt := p.wants("session/prompt")
		second := s.open(core.Request{Content: "2", Thread: "b"})
		p.begins("s1") // again
		s.settle()
		if f := second.Answer().Fault; f == nil || f.Code != core.CodeInvalid || !strings.Contains(f.Message, `the id "s1" of one that is in use`) {
			s.Errorf("got %v, want the second session refused", f)
		}
		p.text("s1", "one")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(first, `text {"text":"one"}`, `done {}`)

		s.turn(p, "s1", "b", "2", "two") // nobody uses the first now
		if prompt := s.turn(p, "s2", "a", "3", "three"); !strings.Contains(prompt, `\"text\":\"one\"`) {
			s.Errorf("got the prompt %s, want the history of the session whose id was given away", prompt)
		}
		_ = stop()
	})
}
