package client_test

import (
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
)

// says runs a turn in which the agent sends updates, and compares what it told.
func tellsOf(t *testing.T, updates []string, want ...string) {
	t.Helper()
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		for _, u := range updates {
			p.updates("s1", u)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, append(want, "done {}")...)
		_ = stop()
	})
}

func TestThoughtsAndTextAreToldWithWhatElseTheySay(t *testing.T) {
	tellsOf(t, []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""}}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a"},"_meta":{"k":1}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"b"}}`,
	},
		`thinking {"text":"hm"}`,
		`text {"text":"a"} + {"_meta":{"k":1}}`,
		`text {"text":"b"}`)
}

func TestAnotherMessageIsAnotherParagraph(t *testing.T) {
	tellsOf(t, []string{
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"one"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":" more"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"two"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":" more"}}`,
	},
		`text {"text":"one"} + {"messageId":"m1"}`,
		`text {"text":" more"}`,
		`text {"text":"\n\ntwo"} + {"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"two"}}`,
		`text {"text":" more"}`)
}

func TestAMessageThatBeginsWithoutTextIsAnotherParagraph(t *testing.T) {
	tellsOf(t, []string{
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":""}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":"one"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":""}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"two"}}`,
		`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":" more"}}`,
	},
		`text {"text":""} + {"messageId":"m1"}`,
		`text {"text":"one"}`,
		`text {"text":""} + {"messageId":"m2"}`,
		`text {"text":"\n\ntwo"} + {"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"text","text":"two"}}`,
		`text {"text":" more"}`)
}

func TestOtherContentIsAFileOrALink(t *testing.T) {
	tellsOf(t, []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"audio","data":"aGk=","mimeType":"audio/wav","uri":"file:///a/b.wav"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///a/c.txt","text":"hi"}}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"https://example.com/d","name":"d"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","depth":3}}`,
	},
		`file {"name":"image.png","media_type":"image/png","data":"aGk="} + {"content":{"mimeType":"image/png"}}`,
		`file {"name":"b.wav","media_type":"audio/wav","data":"aGk="} + {"content":{"mimeType":"audio/wav","uri":"file:///a/b.wav"}}`,
		`file {"name":"c.txt","media_type":"text/plain","data":"aGk="} + {"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"file:///a/c.txt","text":"hi"}}}`,
		`text {"text":"[d](https://example.com/d)"} + {"sessionUpdate":"agent_message_chunk","content":{"type":"resource_link","uri":"https://example.com/d","name":"d"}}`,
		`foreign {"dialect":"editor","name":"agent_message_chunk"} + {"sessionUpdate":"agent_message_chunk","content":{"type":"hologram","depth":3}}`)
}

func TestKindsWithoutAWordPassAsTheyAre(t *testing.T) {
	var updates, want []string
	for _, kind := range []string{"plan", "available_commands_update", "current_mode_update", "config_option_update", "session_info_update", "user_message_chunk", "hologram_update"} {
		u := `{"sessionUpdate":"` + kind + `","x":[1, 2]}`
		updates = append(updates, u)
		want = append(want, `foreign {"dialect":"editor","name":"`+kind+`"} + {"sessionUpdate":"`+kind+`","x":[1, 2]}`)
	}
	tellsOf(t, updates, want...)
}

func TestAToolCallIsToldFromItsBeginningToItsResult(t *testing.T) {
	call := `{"sessionUpdate":"tool_call","toolCallId":"t","title":"Edit a.txt","kind":"edit","status":"pending","locations":[{"path":"/w/a.txt"}]}`
	input := `{"sessionUpdate":"tool_call_update","toolCallId":"t","rawInput":{"path":"a.txt"},"title":"Edit a.txt, twice"}`
	running := `{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"in_progress"}`
	done := `{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed","content":[{"type":"content","content":{"type":"text","text":"done"}},{"type":"diff","path":"/w/a.txt","oldText":"one\ntwo\n","newText":"one\n2\n"}]}`
	late := `{"sessionUpdate":"tool_call_update","toolCallId":"t","rawOutput":{"x":1}}`
	tellsOf(t, []string{call, input, running, done, late},
		`tool_call {"id":"t","name":"Edit a.txt, twice","input":"{\"path\":\"a.txt\"}"} + `+call,
		`tool_state {"id":"t","state":"pending","detail":"Edit a.txt, twice"} + `+input,
		`tool_state {"id":"t","state":"running"} + `+running,
		`tool_result {"id":"t","output":"done\nChanged /w/a.txt"} + `+done,
		`file {"name":"a.txt.diff","media_type":"text/x-diff","data":"LS0tIC93L2EudHh0CisrKyAvdy9hLnR4dApAQCAtMSwyICsxLDIgQEAKIG9uZQotdHdvCisyCg=="} + {}`,
		`tool_state {"id":"t","state":"completed"} + `+late)
}

func TestAToolThatFailsIsAnErrorAndChangesNoFile(t *testing.T) {
	update := `{"sessionUpdate":"tool_call_update","toolCallId":"t","title":"Run","status":"failed","rawOutput":"exit 1","content":[{"type":"diff","path":"/a","newText":"b"}]}`
	unnamed := `{"sessionUpdate":"tool_call","toolCallId":"u","status":"completed","rawInput":{"a":1},"rawOutput":{"b":2}}`
	tellsOf(t, []string{update, unnamed},
		`tool_call {"id":"t","name":"Run","input":""} + `+update,
		`tool_result {"id":"t","output":"exit 1","is_error":true} + {}`,
		`tool_call {"id":"u","name":"tool","input":"{\"a\":1}"} + `+unnamed,
		`tool_result {"id":"u","output":"{\"b\":2}"} + {}`)
}

func TestAToolCallThatCannotBeReadPassesAsItIs(t *testing.T) {
	bad := `{"sessionUpdate":"tool_call","toolCallId":7}`
	tellsOf(t, []string{bad}, `foreign {"dialect":"editor","name":"tool_call"} + `+bad)
}

func TestUpdatesBetweenTurnsAreToldInTheNextOne(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		first := s.open(core.Request{Content: "1", Thread: "t"})
		p.begins("s1")
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(first, "done {}")
		p.updates("s1", `{"sessionUpdate":"current_mode_update","currentModeId":"a"}`)
		p.updates("s1", `{"sessionUpdate":"current_mode_update","currentModeId":"b"}`)
		p.text("s1", "too late")
		synctest.Wait()
		second := s.open(core.Request{Content: "2", Thread: "t"})
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(second, `foreign {"dialect":"editor","name":"late_update"} + {"lost_bytes":83}`, `foreign {"dialect":"editor","name":"current_mode_update"} + {"sessionUpdate":"current_mode_update","currentModeId":"b"}`, "done {}")
		if n := s.counted("editor.update_outside_turn"); n != 1 {
			s.Errorf("counted %d updates outside a turn, want the chunk", n)
		}
		_ = stop()
	})
}

func TestACharacterInTwoChunksIsOne(t *testing.T) {
	tellsOf(t, []string{
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm \ud83d"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ud83d"}}`,
		`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"\ude00"}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\ude00!\ud83d"}}`,
	},
		`thinking {"text":"hm "}`,
		`thinking {"text":"😀"}`,
		`text {"text":"😀!"}`,
		`text {"text":"�"}`)
}
