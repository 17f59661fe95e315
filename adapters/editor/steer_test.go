package editor_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnEditorSteersTheTurnThatRunsAndLearnsWhatTheAgentSays(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		steer := func(id int, session, prompt string) {
			c.send(`{"jsonrpc":"2.0","id":%d,"method":"_session/steering","params":{"sessionId":%q,"prompt":%s,"_meta":{"steering":{"idleBehavior":"promptRequired"}}}}`, id, session, prompt)
		}
		const word = `[{"type":"text","text":"use "},{"type":"text","text":"tabs"}]`
		steer(2, session, word)
		c.want(`{"jsonrpc":"2.0","id":2,"result":{"outcome":"promptRequired","reason":"noRunningTurn"}}`)
		steer(3, "other", word)
		c.wantError(3.0, -32002, `there is no session "other": begin one with session/new, or load one that session/list names`)

		c.prompt(4, session, "go")
		task := s.assigned()
		told := func() core.Injected {
			t.Helper()
			_, b := s.next(s.coder, core.KindInjected)
			return b.(core.Injected)
		}
		steer(5, session, word)
		in := told()
		if in.Content != "use tabs" {
			t.Errorf("the agent was told %q, want use tabs", in.Content)
		}
		s.say(task, core.InjectionAnswered{ID: in.ID, Accepted: true})
		c.want(`{"jsonrpc":"2.0","id":5,"result":{"outcome":"injected"}}`)
		steer(6, session, word)
		s.say(task, core.InjectionAnswered{ID: told().ID, Reason: "too late"})
		c.want(`{"jsonrpc":"2.0","id":6,"result":{"outcome":"failed","reason":"too late"}}`)
		steer(7, session, `[{"type":"image","mimeType":"image/png","data":"AA=="}]`)
		c.wantError(7.0, -32602, "prompt: only text reaches a turn that runs: send files with the next session/prompt")
		steer(8, session, word)
		told()
		synctest.Wait()
		s.say(task, core.Done{})
		c.want(`{"jsonrpc":"2.0","id":8,"result":{"outcome":"failed","reason":"the turn ended before the agent answered"}}`, ended(4, "end_turn"))
	})
}
