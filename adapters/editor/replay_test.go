package editor_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// other is somebody else who asks in a thread.
func (s *setup) other(id string, thread, content string) *hub.Session {
	s.Helper()
	o := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: id, Dialect: "test"}, Dialect: "test", Keep: true})
	if _, err := o.Open(core.Request{To: core.ToAgent("coder"), Thread: core.ThreadID(thread), Content: content}, hub.OpenOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { o.Close(nil) })
	return o
}

// people is an editor that may read what others ask, as on an open hub.
var people = editor.Options{Principal: core.Principal{ID: "editor", Dialect: "editor", Operator: true}}

func (c *client) load(id int, session string) {
	c.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"session/load","params":{"sessionId":%q,"cwd":"/a","mcpServers":[]}}`, id, session)
}

func result(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }

func TestTurnsOfOthersAreShown(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(people, none)
		s.other("bob", session, "hello")
		task := s.assigned()
		s.say(task, core.Text{Text: "hi bob"}, core.Done{})
		c.want(chunk("user_message_chunk", "[bob] "), chunk("user_message_chunk", "hello"), chunk("agent_message_chunk", "hi bob"))
		c.wantNothing()
		// An editor that may not read it sees nothing.
		c, session = s.begun(editor.Options{}, none)
		s.other("bob", session, "secret")
		s.say(s.assigned(), core.Done{})
		c.wantNothing()
	})
}

func TestALoadedSessionShowsAllThatWasSaid(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(people, none)
		c.prompt(2, session, "one")
		s.say(s.assigned(), core.Thinking{Text: "hm"}, core.Text{Text: "1"}, core.ToolCall{ID: "t", Name: "ls", Input: "{}"}, core.ToolState{ID: "t", State: core.ToolCompleted}, core.Text{Text: "!"}, core.Done{})
		c.prompt(3, session, "two")
		s.say(s.assigned(), core.Failed{Fault: core.NewFault(core.CodeInternal, "broken")})
		s.other("bob", session, "three")
		task := s.assigned()
		s.say(task, core.Text{Text: "half"})
		synctest.Wait()

		d := s.greeted(people, none)
		d.load(1, session)
		all := []string{
			chunk("user_message_chunk", "one"), chunk("agent_thought_chunk", "hm"), chunk("agent_message_chunk", "1"),
			`{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","name":"ls","kind":"other","status":"pending","rawInput":{}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed"}`, chunk("agent_message_chunk", "!"), chunk("user_message_chunk", "two"), chunk("agent_message_chunk", "[internal: broken]\n"),
			chunk("user_message_chunk", "[bob] "), chunk("user_message_chunk", "three"), chunk("agent_message_chunk", "half"),
		}
		d.want(all...)
		d.want(result(1))
		s.say(task, core.Text{Text: " more"})
		d.want(chunk("agent_message_chunk", " more"))

		// The same again, while a turn runs.
		d.load(2, session)
		d.want(all[:len(all)-1]...)
		d.want(chunk("agent_message_chunk", "half more"), result(2))
		s.say(task, core.Done{})
		s.other("bob", session, "four")
		s.say(s.assigned(), core.Done{Text: "4"})
		d.want(chunk("user_message_chunk", "[bob] "), chunk("user_message_chunk", "four"), chunk("agent_message_chunk", "4"))
		d.wantNothing()
	})
}

func TestALoadDuringAPromptOfItsOwnRepeatsWhatWasShown(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(people, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.Text{Text: "a"})
		c.want(chunk("agent_message_chunk", "a"))
		c.load(3, session)
		c.want(chunk("user_message_chunk", "run"), chunk("agent_message_chunk", "a"), result(3))
		s.say(task, core.Text{Text: "b"}, core.Done{})
		c.want(chunk("agent_message_chunk", "b"), ended(2, "end_turn"))
		c.wantNothing()
	})
}

func TestALoadRightAfterAPromptShowsTheTurnOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(people, none)
		c.prompt(2, session, "run")
		c.load(3, session)
		synctest.Wait()
		s.say(s.assigned(), core.Text{Text: "a"}, core.Done{})
		answer, loaded, asked := 0, false, 0
		for range 4 {
			switch m := c.receive(); {
			case m.raw == result(3):
				loaded = true
			case m.update() == chunk("user_message_chunk", "run"):
				asked++
			case m.update() == chunk("agent_message_chunk", "a"):
				answer++
			case m.raw == ended(2, "end_turn"):
				if answer != 1 || !loaded || asked > 1 {
					t.Errorf("got the answer %d times, the question %d times, loaded %t: want them once", answer, asked, loaded)
				}
				c.wantNothing()
				return
			default:
				t.Errorf("got %s", m.raw)
			}
		}
	})
}

func TestATaskOutlivesTheEditorAndIsFoundAgain(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.Text{Text: "before"}, core.ApprovalRequested{ID: "t1", Name: "rm", Input: "{}"})
		_ = c.conn.Close(link.Reason{Cause: link.PeerGone})
		<-c.ended
		s.say(task, core.Text{Text: " and after"})

		d := s.greeted(editor.Options{}, none)
		d.load(1, session)
		d.want(chunk("user_message_chunk", "run"), chunk("agent_message_chunk", "before"), chunk("agent_message_chunk", " and after"))
		_, id := d.asked("session/request_permission")
		d.want(result(1))
		d.answer(id, `{"outcome":{"outcome":"selected","optionId":"allow_once"}}`)
		if got := s.decided(); !got.Approved {
			t.Errorf("got %+v, want it approved", got)
		}
		s.sayForeign(task, core.ToolResult{ID: "t1"}, `{}`)
		s.say(task, core.Done{})
		d.wantNothing()
	})
}

func TestATaskIsDroppedWithTheEditorIfSoSet(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{DropTasks: true}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		_ = c.conn.Close(link.Reason{Cause: link.Normal})
		if got := <-c.ended; got.Cause != link.Normal {
			t.Errorf("got the end %+v, want a normal one", got)
		}
		s.next(s.coder, core.KindCancelRequested)
		s.say(task, core.Cancelled{})
	})
}

func TestAResumedSessionShowsWhatComes(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		s.say(task, core.ToolCall{ID: "t1", Name: "ls", Input: "{}"}, core.Text{Text: "before"})
		synctest.Wait()
		_ = c.conn.Close(link.Reason{Cause: link.PeerGone})
		<-c.ended
		d := s.greeted(editor.Options{}, none)
		d.send(`{"jsonrpc":"2.0","id":1,"method":"session/resume","params":{"sessionId":%q,"cwd":"/a"}}`, session)
		d.want(chunk("agent_thought_chunk", "[an answer goes on here: load the session to see its beginning]\n"), result(1))
		s.say(task, core.ToolState{ID: "t1", State: core.ToolCompleted}, core.Text{Text: "after"}, core.Done{})
		d.want(`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed"}`, chunk("agent_message_chunk", "after"))
		// A prompt goes on in the same thread.
		d.prompt(5, session, "next")
		if got := string(s.assigned().Thread()); got != session {
			t.Errorf("got the thread %s, want %s", got, session)
		}
	})
}

func TestASessionOfAnEarlierConnectionNeedsNoLoad(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		_ = c.conn.Close(link.Reason{Cause: link.Normal})
		<-c.ended
		d := s.greeted(editor.Options{}, none)
		d.prompt(2, session, "run")
		task := s.assigned()
		d.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
		s.next(s.coder, core.KindCancelRequested)
		s.say(task, core.Cancelled{})
		d.want(ended(2, "cancelled"))
	})
}

func TestAPromptIsCancelledWhileItsSessionIsOpened(t *testing.T) {
	for _, cancel := range []string{
		`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":2,"sessionId":%q}}`,
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, none)
			_ = c.conn.Close(link.Reason{Cause: link.Normal})
			<-c.ended
			d := s.greeted(editor.Options{}, none)
			d.prompt(2, session, "run")
			d.send(cancel, session)
			// Whether the agent was told of it before or not, it has to let it go.
			go func() {
				for {
					b, err := s.coder.Next(s.Context())
					if err != nil {
						return
					}
					for _, e := range b.Events {
						if e.Body.Kind() == core.KindCancelRequested {
							_ = s.coder.Report(b.Task.ID(), core.Cancelled{}, nil) // it may have ended
						}
					}
				}
			}()
			d.want(ended(2, "cancelled"))
		})
	}
}

func TestAClosedSessionIsCancelledAndShownNoMore(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(people, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		c.send(`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":%q}}`, session)
		c.want(result(3))
		s.next(s.coder, core.KindCancelRequested)
		s.say(task, core.Cancelled{})
		c.want(ended(2, "cancelled"))
		s.other("bob", session, "hello")
		s.say(s.assigned(), core.Done{})
		c.wantNothing()
	})
}

func TestSessionsAreListedByWhatWasAskedInThem(t *testing.T) {
	withHub(t, func(s *setup) {
		c, first := s.begun(people, none)
		c.prompt(2, first, strings.Repeat("long ", 40)+"\nand more")
		s.say(s.assigned(), core.Done{})
		c.want(ended(2, "end_turn"))
		c.send(`{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/b","mcpServers":[]}}`)
		second := c.receive().text("result", "sessionId")
		for id, text := range map[int]string{6: "fix the bug", 7: "fix the bug"} {
			c.prompt(id, second, text)
			s.say(s.assigned(), core.Done{})
			c.want(ended(id, "end_turn"))
		}
		s.other("bob", "elsewhere", "of another dialect")
		s.say(s.assigned(), core.Done{})
		at := `"updatedAt":"2000-01-01T00:00:00Z"`
		title := strings.Repeat("long ", 16)[:79] + "…"
		c.send(`{"jsonrpc":"2.0","id":8,"method":"session/list","params":{}}`)
		c.want(`{"jsonrpc":"2.0","id":8,"result":{"sessions":[{"sessionId":"` + second + `","cwd":"/b","title":"fix the bug",` + at + `},` +
			`{"sessionId":"` + first + `","cwd":"/home/ada/project","title":"` + title + `",` + at + `}]}}`)
		c.send(`{"jsonrpc":"2.0","id":9,"method":"session/list","params":{"cwd":"/b"}}`)
		c.want(`{"jsonrpc":"2.0","id":9,"result":{"sessions":[{"sessionId":"` + second + `","cwd":"/b","title":"fix the bug",` + at + `}]}}`)
		c.send(`{"jsonrpc":"2.0","id":10,"method":"session/list","params":{"cwd":"/nowhere"}}`)
		c.want(`{"jsonrpc":"2.0","id":10,"result":{"sessions":[]}}`)
	})
}
