package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// abandons cancels a task, which ends after the grace, and takes what the agent is told.
func (s *served) abandons(t *task.Task, p *peer, method string) {
	s.Helper()
	synctest.Wait()
	if err := s.user.Cancel(t.ID(), ""); err != nil {
		s.Fatal(err)
	}
	p.wants(method)
	time.Sleep(hub.Limits{}.WithDefaults().CancelGrace + time.Second) // of the fake clock
	synctest.Wait()
}

func TestASessionThatBeginsTooLateIsClosed(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{"sessionCapabilities":{"close":{}}}`)
		asked := s.ask("x")
		slow := p.wants("session/new")
		s.abandons(asked, p, "$/cancel_request")
		p.replies(slow, `{"sessionId":"s1"}`)
		m := p.wants("session/close")
		if got, _ := m.Params.Get("sessionId").Text(); got != "s1" {
			s.Errorf("got %s closed, want the session that nobody uses", m.Params.Raw())
		}
		p.replies(m, `{}`)
		synctest.Wait()
		if n := s.counted("editor.unknown_response"); n != 0 {
			s.Errorf("counted %d answers as unknown, want the late ones known", n)
		}
		_ = stop()
	})
}

func TestALateAnswerIsNotThatOfTheNextPrompt(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		one := s.open(core.Request{Content: "1", Thread: "t"})
		p.begins("s1")
		first := p.wants("session/prompt")
		s.abandons(one, p, "session/cancel")
		two := s.open(core.Request{Content: "2", Thread: "t"})
		p.begins("s2")
		p.wants("session/prompt")
		p.replies(first, `{"stopReason":"cancelled"}`)
		s.abandons(two, p, "session/cancel")
		asked := s.open(core.Request{Content: "3", Thread: "t"})
		m := p.next()
		if m.Method != "session/new" { // the second prompt still runs in its session
			s.Errorf("got %s, want a new session", m.Whole.Raw())
		}
		p.replies(m, `{"sessionId":"s3"}`)
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
}

func TestAPromptThatIsCancelledBeforeThereIsRoomForItIsNotSent(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask(strings.Repeat("x", 2<<20))
		opened := p.wants("session/new")
		const refused = 20 // more than the connection takes before the agent reads
		for i := range refused {
			p.says(`{"jsonrpc":"2.0","id":%d,"method":"later/maybe","params":{}}`, i)
		}
		p.replies(opened, `{"sessionId":"s1"}`)
		synctest.Wait() // the prompt waits behind the refusals
		if err := s.user.Cancel(asked.ID(), "enough"); err != nil {
			s.Fatal(err)
		}
		s.settle()
		if a := asked.Answer(); a.End != core.KindCancelled {
			s.Errorf("got %s (%v), want it cancelled at once", a.End, a.Fault)
		}
		for i := range refused {
			p.answers(fmt.Sprint(i))
		}
		s.ask("next")
		p.begins("s2") // the agent has got nothing else
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		synctest.Wait()
		_ = stop()
	})
}
