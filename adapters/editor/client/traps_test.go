package client_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// What agents do that are in use, beside the protocol or in their own reading of it.

func TestAToolCallIsToldWithTheInputThatFollows(t *testing.T) {
	const rest = `,"title":"Write","kind":"edit","status":"pending"`
	for name, c := range map[string]struct {
		updates []string
		want    []string
	}{
		"Claude Code": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{},"name":"Write"` + rest + `}`,
			`{"sessionUpdate":"tool_call","toolCallId":"b","rawInput":{},"name":"Write"` + rest + `}`, // both are written before either has its input
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{"file_path":"/w/a"},"content":[{"type":"diff","path":"/w/a","newText":"x"}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"b","rawInput":{"file_path":"/w/b"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","_meta":{"claudeCode":{"toolResponse":{}}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":"written"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"failed","rawOutput":"full"}`,
		}, []string{
			`tool_call {"id":"a","name":"Write","input":"{\"file_path\":\"/w/a\"}"}`, `tool_state {"id":"a","state":"pending"}`,
			`tool_call {"id":"b","name":"Write","input":"{\"file_path\":\"/w/b\"}"}`, `tool_state {"id":"b","state":"pending"}`,
			`tool_state {"id":"a","state":"pending"}`, `tool_result {"id":"a","output":"written"}`, `file {"name":"a.diff"`, `tool_result {"id":"b","output":"full","is_error":true}`,
		}},
		"OpenCode": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{"cwd":"/w"}` + rest + `}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress","rawInput":{"cwd":"/w","command":"ls"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","rawOutput":{"output":"a.txt\n"}}`,
		}, []string{
			`tool_call {"id":"a","name":"Write","input":"{\"cwd\":\"/w\",\"command\":\"ls\"}"}`, `tool_state {"id":"a","state":"running"}`, `tool_result {"id":"a","output":"{\"output\":\"a.txt\\n\"}"}`,
		}},
		"a call that has none": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{}` + rest + `}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`,
		}, []string{`tool_call {"id":"a","name":"Write","input":"{}"}`, `tool_state {"id":"a","state":"running"}`, `tool_result {"id":"a","output":""}`}},
		"one that comes after it was told": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"a","title":"Spawn","status":"in_progress","rawInput":{}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{"prompt":"go"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","rawInput":{}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed"}`,
		}, []string{
			`tool_call {"id":"a","name":"Spawn","input":"{}"}`, `tool_state {"id":"a","state":"running"}`, `tool_state {"id":"a","state":"running","detail":"its input is now {\"prompt\":\"go\"}"}`,
			`tool_state {"id":"a","state":"running"}`, `tool_result {"id":"a","output":""}`,
		}},
		"one that never comes": {[]string{`{"sessionUpdate":"tool_call","toolCallId":"a","rawInput":{}` + rest + `}`},
			[]string{`tool_call {"id":"a","name":"Write","input":"{}"}`, `tool_state {"id":"a","state":"failed","detail":"the agent did not tell its result"}`}},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			for _, u := range c.updates {
				p.updates("s1", u)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			got := s.told(asked)
			if len(got) != len(c.want)+1 {
				s.Fatalf("%s: the task told\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
			verbatim := 0
			for i, want := range c.want {
				if !strings.HasPrefix(got[i], want) {
					s.Errorf("%s: got %s, want %s", name, got[i], want)
				}
				verbatim += strings.Count(got[i], `"sessionUpdate"`)
			}
			if verbatim != len(c.updates) {
				s.Errorf("%s: got %d updates as they are, want each of the %d once", name, verbatim, len(c.updates))
			}
			_ = stop()
		})
	}
}

func TestWhatIsApprovedIsWhatTheAgentTellsOfTheCall(t *testing.T) {
	for name, c := range map[string]struct {
		before, call string
		input        string
	}{
		"Gemini CLI, a tool of MCP": {"", `{"toolCallId":"t1","status":"pending","title":"add (demo MCP Server)","content":[{"type":"content","content":{"type":"text","text":"{\"a\":1}"}}],"locations":[],"kind":"other"}`, `{"a":1}`},
		"Gemini CLI, a shell":       {"", `{"toolCallId":"t1","status":"pending","title":"rm a.txt","content":[],"locations":[],"kind":"execute"}`, `{"title":"rm a.txt"}`},
		"Gemini CLI, a file": {
			"", `{"toolCallId":"t1","status":"pending","title":"Writing to a","content":[{"type":"diff","path":"a","newText":"x\n"}]}`, `{"diff":"--- /dev/null\n+++ a\n@@ -0,0 +1,1 @@\n+x\n"}`,
		},
		"a text that is no JSON": {"", `{"toolCallId":"t1","title":"ask","content":[{"type":"content","content":{"type":"text","text":"{open"}}]}`, `{"content":"{open"}`},
		"Qwen Code":              {`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"write_file","status":"pending","rawInput":{}}`, `{"toolCallId":"t1","title":"Write a","rawInput":{"file_path":"/w/a"}}`, `{"file_path":"/w/a"}`},
		"OpenCode": {
			`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"write","status":"in_progress","rawInput":{"filePath":"a","content":"x"}}`,
			`{"toolCallId":"t1","rawInput":{"filepath":"/w/a","diff":"+x"}}`, `{"filepath":"/w/a","diff":"+x"}`,
		},
		"nothing but an input that is empty": {"", `{"toolCallId":"t1","title":"now","rawInput":{}}`, `{}`},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			if c.before != "" {
				p.updates("s1", c.before)
			}
			p.permits("0", "s1", c.call, `[{"optionId":"y","name":"Allow","kind":"allow_once"},{"optionId":"n","name":"Reject","kind":"reject_once"}]`)
			synctest.Wait()
			var call core.ToolCall
			var held core.ApprovalRequested
			for _, e := range asked.Events() {
				switch b := e.Body.(type) {
				case core.ToolCall:
					call = b
				case core.ApprovalRequested:
					held = b
				}
			}
			if held.Input != c.input || held.InputSHA256 != core.InputDigest(c.input) {
				s.Errorf("%s: got the approval %+v, want the input %s and its hash", name, held, c.input)
			}
			if call.ID != "t1" || call.Input == "" || call.Input == "{}" && c.input != "{}" {
				s.Errorf("%s: got the call %+v before the approval, want it with its input", name, call)
			}
			if err := s.user.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "t1", InputSHA256: held.InputSHA256}); err != nil {
				s.Errorf("%s: a denial of the hash that was shown: got %v, want it taken", name, err)
			}
			if got, want := p.answers("0"), `{"outcome":{"outcome":"selected","optionId":"n"}}`; got != want {
				s.Errorf("%s: the agent got %s, want %s", name, got, want)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			s.wait(asked)
			_ = stop()
		})
	}
}

func TestTheResultOfAToolIsWhatItSaidLast(t *testing.T) {
	const stale = `"content":[{"type":"content","content":{"type":"text","text":"lists files"}}]`
	for name, c := range map[string]struct{ first, more, last, want string }{
		"a text beside the stale content":        {stale, "", `"rawOutput":"a.txt"`, "a.txt"},
		"an object beside the stale content":     {stale, "", `"rawOutput":{"n":1}`, `{\"n\":1}`},
		"a text and the same in a fence":         {stale, "", `"rawOutput":"a.txt","content":[{"type":"content","content":{"type":"text","text":"~~~\na.txt\n~~~"}}]`, "a.txt"},
		"a text in the content":                  {stale, "", `"rawOutput":{"n":1},"content":[{"type":"content","content":{"type":"text","text":"a.txt"}}]`, "a.txt"},
		"a command without output":               {stale, "", `"content":[]`, ""},
		"content alone, told before its end":     {`"content":[]`, stale, ``, "lists files"},
		"what a command printed, beside all":     {`"content":[{"type":"terminal","terminalId":"1"}]`, `"_meta":{"terminal_output_delta":{"data":"a.","terminal_id":"1"}}`, `"_meta":{"terminal_output_delta":{"data":"txt"},"terminal_exit":{"exit_code":0}}`, "a.txt"},
		"a change that is repeated with no text": {`"content":[{"type":"diff","path":"/w/a","newText":"x"}]`, "", `"content":[{"type":"diff","path":"/w/a","newText":"x"}]`, "Changed /w/a"},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			p.updates("s1", `{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","status":"in_progress","rawInput":{"a":1},`+c.first+`}`)
			if c.more != "" {
				p.updates("s1", `{"sessionUpdate":"tool_call_update","toolCallId":"t",`+c.more+`}`)
			}
			p.updates("s1", strings.TrimSuffix(`{"sessionUpdate":"tool_call_update","toolCallId":"t","status":"completed",`+c.last, ",")+`}`)
			p.replies(prompt, `{"stopReason":"end_turn"}`)
			got := strings.Join(s.told(asked), "\n")
			if !strings.Contains(got, `tool_result {"id":"t","output":"`+c.want+`"}`) {
				s.Errorf("%s: the task told\n%s\nwant the result %s", name, got, c.want)
			}
			_ = stop()
		})
	}
}

func TestWhatAnAgentSaysSoonAfterItsAnswerBelongsToTheTurn(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.open(core.Request{Content: "x", Thread: "t"})
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.text("s1", "most, ")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		for _, more := range []string{"and ", "the rest"} {
			time.Sleep(200 * time.Millisecond)
			p.text("s1", more)
		}
		s.settle()
		if a := asked.Answer(); a.End != core.KindDone || a.Text != "most, and the rest" || a.Truncated {
			s.Errorf("got %s with %q, truncated: %t; want all of it", a.End, a.Text, a.Truncated)
		}

		// It does not end.
		asked = s.open(core.Request{Content: "x", Thread: "t"})
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		for range 30 {
			time.Sleep(100 * time.Millisecond)
			p.text("s1", "x")
		}
		s.settle()
		if a := asked.Answer(); a.End != core.KindDone || len(a.Text) < 15 || len(a.Text) > 25 || !a.Truncated {
			s.Errorf("got %s with %q, truncated: %t; want what came within two seconds, marked as truncated", a.End, a.Text, a.Truncated)
		}

		// The next turn says that something was lost, and begins with nothing of it.
		asked = s.open(core.Request{Content: "x", Thread: "t"})
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		if got := s.told(asked); len(got) != 2 || !strings.HasPrefix(got[0], `foreign {"dialect":"editor","name":"late_update"} + {"lost_bytes":`) {
			s.Errorf("got %q, want how much was lost before the end", got)
		}
		if n := s.counted("editor.update_outside_turn"); n == 0 {
			s.Error("counted no updates outside a turn, want those that came too late")
		}
		_ = stop()
	})
}

func TestACancelAfterTheAnswerDoesNotWaitForMore(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		synctest.Wait()
		if err := s.user.Cancel(asked.ID(), ""); err != nil {
			s.Fatal(err)
		}
		p.wants("session/cancel")
		synctest.Wait()
		if a := asked.Answer(); a.End != core.KindDone {
			s.Errorf("got %s, want the turn ended at once as the agent has answered", a.End)
		}
		_ = stop()
	})
}

func TestWhatIsRepeatedAfterTheAnswerToLoadIsNotTold(t *testing.T) {
	log := &coretest.MemoryLog{}
	keep := func(o *client.Options) { o.Sessions = log }
	const capabilities = `{"loadSession":true}`
	serve(t, keep, func(s *served) {
		p, stop := s.start(capabilities)
		s.turn(p, "s1", "t", "first", "one")
		_ = stop()
	})
	serve(t, keep, func(s *served) { // after a restart of the hub
		p, stop := s.start(capabilities)
		asked := s.open(core.Request{Content: "second", Thread: "t"})
		m := p.wants("session/load")
		p.updates("s1", `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"<session_context>"}}`)
		p.replies(m, `{}`)
		for range 5 {
			time.Sleep(300 * time.Millisecond)
			p.updates("s1", `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"first"}}`)
			p.updates("s1", `{"sessionUpdate":"tool_call","toolCallId":"t","title":"ls","status":"completed"}`)
			p.text("s1", "one")
		}
		prompt := p.wants("session/prompt")
		p.text("s1", "two")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, `text {"text":"two"}`, "done {}")
		if n := s.counted("editor.update_outside_turn"); n != 0 {
			s.Errorf("counted %d updates as lost, want none: the replay was expected", n)
		}
		_ = stop()
	})
}

func TestNoticesAreNoPartOfTheAnswer(t *testing.T) {
	notice := `{"sessionUpdate":"notice","severity":"warning","title":"Old model","description":"Use a newer one."}`
	hint := `{"sessionUpdate":"notice","severity":"info","title":"Tip"}`
	tellsOf(t, []string{notice, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"yes"}}`, hint, `{"sessionUpdate":"notice","title":7}`},
		`thinking {"text":"warning: Old model: Use a newer one.\n"} + `+notice, `text {"text":"yes"}`, `thinking {"text":"info: Tip\n"} + `+hint,
		`foreign {"dialect":"editor","name":"notice"} + {"sessionUpdate":"notice","title":7}`)

	serve(t, nil, func(s *served) { // also those that come while no turn runs, each of them
		p, stop := s.start(`{}`)
		s.turn(p, "s1", "t", "first", "one")
		p.updates("s1", notice)
		p.updates("s1", hint)
		synctest.Wait()
		asked := s.open(core.Request{Content: "2", Thread: "t"})
		p.replies(p.wants("session/prompt"), `{"stopReason":"end_turn"}`)
		s.tells(asked, `thinking {"text":"warning: Old model: Use a newer one.\n"} + `+notice, `thinking {"text":"info: Tip\n"} + `+hint, "done {}")
		_ = stop()
	})
}

func TestACompactionIsToldAsWhatTheAgentDoes(t *testing.T) {
	begun := `{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`
	failed := `{"sessionUpdate":"compaction_update","compactionId":"c","status":"failed","error":"no room"}`
	summary := `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"so far"}}`
	tellsOf(t, []string{begun, summary, failed, `{"sessionUpdate":"compaction_update","status":7}`},
		`thinking {"text":"compaction of the context: in progress\n"} + `+begun, `foreign {"dialect":"editor","name":"compaction_summary_chunk"} + `+summary,
		`thinking {"text":"compaction of the context: failed: no room\n"} + `+failed, `foreign {"dialect":"editor","name":"compaction_update"} + {"sessionUpdate":"compaction_update","status":7}`)
}

func TestACallOfASubagentNamesTheCallThatItIsAPartOf(t *testing.T) {
	claude := `{"sessionUpdate":"tool_call","toolCallId":"c","title":"ls","status":"completed","rawInput":{"a":1},"_meta":{"claudeCode":{"parentToolUseId":"p","toolName":"Bash"}}}`
	qwen := `{"sessionUpdate":"tool_call","toolCallId":"q","title":"ls","status":"completed","rawInput":{"a":1},"_meta":{"parentToolCallId":"p","provenance":"subagent"}}`
	odd := `{"sessionUpdate":"tool_call","toolCallId":"o","title":"ls","status":"completed","rawInput":{"a":1},"_meta":{"claudeCode":{"parentToolUseId":7}}}`
	const ended = `tool_result {"id":"%s","output":""} + {}`
	tellsOf(t, []string{claude, qwen, odd},
		`tool_call {"id":"c","name":"ls","input":"{\"a\":1}","parent":"p"} + `+claude, fmt.Sprintf(ended, "c"),
		`tool_call {"id":"q","name":"ls","input":"{\"a\":1}","parent":"p"} + `+qwen, fmt.Sprintf(ended, "q"),
		`tool_call {"id":"o","name":"ls","input":"{\"a\":1}"} + `+odd, fmt.Sprintf(ended, "o"))
}

func TestAChangeOfModeIsNoTextOfTheAnswer(t *testing.T) {
	mode := `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] autoEdit"}}`
	tellsOf(t, []string{mode, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"[MODE_UPDATE] is what it says."}}`},
		`foreign {"dialect":"editor","name":"agent_message_chunk"} + `+mode, `text {"text":"[MODE_UPDATE] is what it says."}`)
}

func TestTheUsageOfEachCallOfTheModelIsCounted(t *testing.T) {
	const chunk = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":5,"outputTokens":4,"cachedReadTokens":null,"totalTokens":9}}}`
	tellsOf(t, []string{chunk, `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}`, chunk},
		`usage {"input":5,"output":4} + `+chunk, `text {"text":"hi"}`, `usage {"input":5,"output":4} + `+chunk)
}

func TestErrorsOfAgentsThatAreNotThoseOfTheProtocol(t *testing.T) {
	for name, c := range map[string]struct{ answer, want string }{
		"Gemini CLI": {`{"code":400,"message":"bad key"}`, `failed {"fault":{"code":"internal","message":"the prompt: the agent answered: bad key","peer_code":"400"}}`},
		"Claude Code": {
			`{"code":-32603,"message":"Internal error: API Error","data":{"errorKind":"invalid_request"}}`,
			`failed {"fault":{"code":"internal","message":"the prompt: the agent answered: Internal error: API Error ({\"errorKind\":\"invalid_request\"})","peer_code":"-32603"}}`,
		},
	} {
		serve(t, nil, func(s *served) {
			p, stop := s.start(`{}`)
			asked := s.ask("x")
			p.begins("s1")
			prompt := p.wants("session/prompt")
			p.text("s1", "API Error")
			p.says(`{"jsonrpc":"2.0","id":%s,"error":%s}`, prompt.ID, c.answer)
			if got := s.told(asked); len(got) != 2 || got[1] != c.want {
				s.Errorf("%s: got %q, want %s after what it said", name, got, c.want)
			}
			_ = stop()
		})
	}
}

func TestRequestsBeyondTheProtocolAreAnsweredAndDisturbNothing(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		for id, method := range []string{"craft/drainMidTurnQueue", "fs/write_text_file", "terminal/create", "_ext/ask"} {
			p.says(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{"sessionId":"s1","path":"/w/a","content":"x"}}`, id, method)
			if m := p.next(); m.Err == nil || m.Err.Code != -32601 {
				s.Errorf("%s: got %s, want that the method is unknown", method, m.Whole.Raw())
			}
		}
		for _, method := range []string{"_auth/status_update", "qwen/notify/session/prompt-suggestion"} {
			p.says(`{"jsonrpc":"2.0","method":%q,"params":{"sessionId":"s1"}}`, method)
		}
		child := `{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read","status":"completed","_meta":{"claudeCode":{"parentToolUseId":"t"}}}`
		p.updates("s1", child)
		p.updates("s1:subagent:1", `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"of a child"}}`)
		p.text("s1", "yes")
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.tells(asked, `tool_call {"id":"c","name":"Read","input":"","parent":"t"} + `+child, `tool_result {"id":"c","output":""} + {}`, `text {"text":"yes"}`, "done {}")
		_ = stop()
	})
}

func TestTheFirstOfTwoOptionsOfAKindIsChosen(t *testing.T) {
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.permits("0", "s1", `{"toolCallId":"t1","title":"Run","rawInput":{"a":1}}`,
			`[{"optionId":"proceed_once","name":"Once","kind":"allow_once"},{"optionId":"anyway","name":"Anyway","kind":"allow_once"},{"optionId":"cancel","name":"No","kind":"reject_once"}]`)
		synctest.Wait()
		if err := s.user.Decide(hub.NoWait, asked.ID(), core.ApprovalDecided{ID: "t1", Approved: true}); err != nil {
			s.Fatal(err)
		}
		if got, want := p.answers("0"), `{"outcome":{"outcome":"selected","optionId":"proceed_once"}}`; got != want {
			s.Errorf("the agent got %s, want %s", got, want)
		}
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		_ = stop()
	})
}
