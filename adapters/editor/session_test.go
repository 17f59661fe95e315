package editor_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
)

func TestVersionOneIsAnsweredWhateverIsAsked(t *testing.T) {
	for _, version := range []int{1, 2, 99} {
		withHub(t, func(s *setup) {
			c := s.connect(editor.Options{})
			c.send(`{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":%d,"clientInfo":{"name":"zed","version":"1"}}}`, version)
			c.want(`{"jsonrpc":"2.0","id":"a","result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true,` +
				`"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":false,"sse":false},` +
				`"sessionCapabilities":{"list":{},"resume":{},"close":{},"fork":{}}},"authMethods":[],"agentInfo":{"name":"dragoman","title":"coder","version":"1.0.0"},"_meta":{"steering":{"supported":true}}}}`)
		})
	}
}

func TestAPromptIsATaskAndItsEndTheAnswer(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "fix it")
		task := s.assigned()
		r := task.Request()
		if r.Content != "fix it" || string(r.Thread) != session || r.Context != nil || r.Intent != core.IntentAsk {
			t.Errorf("got %+v, want the prompt", r)
		}
		s.say(task, core.Thinking{Text: "hm"}, core.Text{Text: "do"})
		c.want(chunk("agent_thought_chunk", "hm"), chunk("agent_message_chunk", "do"))
		s.say(task, core.Text{Text: "ne"}, core.Usage{Input: 3, Output: 2, CacheRead: 1}, core.Done{})
		c.want(chunk("agent_message_chunk", "ne"),
			`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn","usage":{"inputTokens":3,"outputTokens":2,"cachedReadTokens":1,"totalTokens":5}}}`)

		c.prompt(3, session, "again")
		s.say(s.assigned(), core.Done{Text: "all at once", Truncated: true})
		c.want(chunk("agent_message_chunk", "all at once"), ended(3, "max_tokens"))
	})
}

// The case of acp-go-sdk#27 and #30: order lost, and the answer before the last chunks.
func TestAThousandChunksComeInOrderAndTheAnswerLast(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "count")
		task := s.assigned()
		go func() {
			for i := range 1000 {
				s.say(task, core.Text{Text: fmt.Sprintf("%d ", i)})
				if i%7 == 0 {
					s.say(task, core.Thinking{Text: "t"})
				}
			}
			s.say(task, core.Done{})
		}()
		var got, want strings.Builder
		thoughts := 0
		for i := range 1000 {
			fmt.Fprintf(&want, "%d ", i)
		}
		for {
			m := c.receive()
			if m.at("id") != nil {
				if m.raw != ended(2, "end_turn") {
					t.Errorf("got %s, want the end", m.raw)
				}
				break
			}
			if text := m.text("params", "update", "content", "text"); m.text("params", "update", "sessionUpdate") == "agent_message_chunk" {
				got.WriteString(text)
			} else {
				thoughts++
			}
		}
		if got.String() != want.String() || thoughts != 143 {
			t.Errorf("got %d bytes and %d thoughts, want %d and 143", got.Len(), thoughts, want.Len())
		}
		c.wantNothing()
	})
}

func TestSessionsAreInterleavedOnOneConnection(t *testing.T) {
	withHub(t, func(s *setup) {
		c, first := s.begun(editor.Options{}, none)
		c.send(`{"jsonrpc":"2.0","id":5,"method":"session/new","params":{"cwd":"/b","mcpServers":[]}}`)
		second := c.receive().text("result", "sessionId")
		c.prompt(2, first, "one")
		one := s.assigned()
		c.prompt(3, second, "two")
		two := s.assigned()
		for i, turn := range []string{first, second, first, second} {
			task := one
			if i%2 == 1 {
				task = two
			}
			s.say(task, core.Text{Text: "x"})
			if got := c.receive().text("params", "sessionId"); got != turn {
				t.Errorf("got a chunk of %s, want %s", got, turn)
			}
		}
		s.say(two, core.Done{})
		c.want(ended(3, "end_turn"))
		s.say(one, core.Done{})
		c.want(ended(2, "end_turn"))
	})
}

func TestACancelledPromptIsAnsweredSo(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
		s.next(s.coder, core.KindCancelRequested)
		s.say(task, core.Text{Text: "the rest"}, core.Cancelled{Reason: "asked to"})
		c.want(chunk("agent_message_chunk", "the rest"), ended(2, "cancelled"))

		// An agent that fails because it was cancelled is no error either.
		c.prompt(3, session, "run")
		task = s.assigned()
		c.send(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":3}}`)
		s.next(s.coder, core.KindCancelRequested)
		s.say(task, core.Failed{Fault: core.NewFault(core.CodeInternal, "aborted")})
		c.want(ended(3, "cancelled"))
	})
}

func TestACancelBeforeTheFirstChunkNeedsNoAgent(t *testing.T) {
	withHub(t, func(s *setup) {
		s.coder.Close(nil)
		s.agent("busy", 1)
		c, session := s.begun(editor.Options{Agent: core.ToAgent("busy")}, none)
		c.prompt(2, session, "first")
		c.prompt(3, session, "queued")
		synctest.Wait()
		c.send(`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":%q}}`, session)
		got := map[string]bool{c.receive().raw: true, c.receive().raw: true}
		if !got[ended(2, "cancelled")] || !got[ended(3, "cancelled")] {
			t.Errorf("got %v, want both cancelled", got)
		}
	})
}

func TestAFailureIsAnErrorThatSaysWhatToDo(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		s.say(s.assigned(), core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "the model is busy: ask again")})
		c.want(chunk("agent_message_chunk", "half"),
			`{"jsonrpc":"2.0","id":2,"error":{"code":-32603,"message":"the model is busy: ask again","data":{"code":"overloaded","retryable":true}}}`)

		c.prompt(3, session, "run")
		refusal := core.NewFault(core.CodeUnsupported, "no")
		refusal.PeerCode = "refusal"
		s.say(s.assigned(), core.Failed{Fault: refusal})
		c.want(ended(3, "refusal"))

		c.prompt(4, session, "run")
		s.assigned()
		s.coder.Close(core.NewFault(core.CodeUnreachable, "it crashed"))
		c.wantError(4.0, -32603, "it crashed")

		c.prompt(5, session, "run")
		c.wantError(5.0, -32002, `no agent "coder" is here`)
	})
}

func TestToolCallsAreUpdates(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		s.say(s.assigned(),
			core.ToolCall{ID: "t1", Name: "grep", Input: `{"for":"x"}`},
			core.ToolState{ID: "t1", State: core.ToolRunning},
			core.ToolResult{ID: "t1", Output: "two\nhits"},
			core.ToolState{ID: "t2", State: core.ToolTimeout, Detail: "30 s"},
			core.ToolResult{ID: "t2", Output: `{"a":1}`, IsError: true},
			core.File{Name: "a b.txt", MediaType: "text/plain", Data: []byte("hi")},
			core.File{Name: "p.png", MediaType: "image/png", Data: []byte{1}},
			core.Done{Data: []byte(`{"n":1}`)},
		)
		c.want(
			`{"sessionUpdate":"tool_call","toolCallId":"t1","title":"grep","name":"grep","kind":"other","status":"pending","rawInput":{"for":"x"}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"in_progress"}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"two\nhits"}}],"rawOutput":"two\nhits"}`,
			`{"sessionUpdate":"tool_call","toolCallId":"t2","title":"t2","kind":"other","status":"failed","content":[{"type":"content","content":{"type":"text","text":"timeout: 30 s"}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"t2","status":"failed","content":[{"type":"content","content":{"type":"text","text":"{\"a\":1}"}}],"rawOutput":{"a":1}}`,
		)
		m := c.receive()
		if !strings.HasSuffix(m.text("params", "update", "content", "resource", "uri"), "/a%20b.txt") || m.text("params", "update", "content", "resource", "text") != "hi" {
			t.Errorf("got %s, want the file as a resource", m.raw)
		}
		c.want(`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"AQ==","mimeType":"image/png"}}`,
			chunk("agent_message_chunk", "\n```json\n{\"n\":1}\n```\n"), ended(2, "end_turn"))
	})
}

func TestContentBlocksBecomeTextAndAttachments(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.send(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":%q,"prompt":[`+
			`{"type":"text","text":"see "},{"type":"resource_link","uri":"file:///a/main.go","name":"main.go"},`+
			`{"type":"resource","resource":{"uri":"file:///a/x.go","text":"package x","mimeType":"text/x-go"}},`+
			`{"type":"resource","resource":{"uri":"file:///b/x.go","blob":"AQI="}},`+
			`{"type":"image","data":"AQ==","mimeType":"image/png"}]}}`, session)
		r := s.assigned().Request()
		if want := "see [@main.go](file:///a/main.go)[@x.go](file:///a/x.go)[@x-2.go](file:///b/x.go)"; r.Content != want {
			t.Errorf("got the content %q, want %q", r.Content, want)
		}
		want := []core.File{{Name: "x.go", MediaType: "text/x-go", Data: []byte("package x")}, {Name: "x-2.go", Data: []byte{1, 2}}, {Name: "image-5.png", MediaType: "image/png", Data: []byte{1}}}
		if fmt.Sprint(r.Attachments) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", r.Attachments, want)
		}
	})
}

func TestBadInputIsAnsweredAndDisturbsNothing(t *testing.T) {
	withHub(t, func(s *setup) {
		c := s.connect(editor.Options{})
		c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`)
		c.wantError(1.0, -32600, "send initialize first")
		c.send(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`)
		c.wantError(1.0, -32602, "protocolVersion")
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		for _, tt := range []struct {
			send string
			id   any
			code int
			want string
		}{
			{`{`, nil, -32700, "not JSON"},
			{`[{"jsonrpc":"2.0","id":1,"method":"x"}]`, nil, -32600, "batch"},
			{`{"jsonrpc":"2.0","id":2,"method":"session/list"}`, nil, -32600, "id 2"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/promt"}`, 3.0, -32601, "did you mean session/prompt?"},
			{`{"jsonrpc":"2.0","id":3,"method":"_zed/thing"}`, 3.0, -32601, "_zed/thing"},
			{`{"jsonrpc":"2.0","id":3,"method":"initialize","params":{"protocolVersion":1}}`, 3.0, -32600, "before"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/new","params":{"cwd":"a","mcpServers":[]}}`, 3.0, -32602, "cwd: want an absolute path"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/new","params":[]}`, 3.0, -32602, "want an object"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"nope","prompt":[{"type":"text","text":"x"}]}}`, 3.0, -32002, "no session \"nope\""},
			{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[]}}`, 3.0, -32602, "prompt: missing"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"hologram"}]}}`, 3.0, -32602, "prompt[0].type"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"` + session + `","prompt":[{"type":"text","text":""}]}}`, 3.0, -32602, "the content is empty"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/load","params":{"sessionId":"nope","cwd":"/a","mcpServers":[]}}`, 3.0, -32002, "nope"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/resume","params":{"sessionId":"nope","cwd":"/a"}}`, 3.0, -32002, "nope"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/close","params":{"sessionId":"nope"}}`, 3.0, -32002, "nope"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/delete","params":{"sessionId":"nope"}}`, 3.0, -32601, "retention"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"nope","modeId":"b"}}`, 3.0, -32002, "nope"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/set_mode","params":{"sessionId":"` + session + `","modeId":"b"}}`, 3.0, -32602, "has not said what it can be set to"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":"` + session + `","configId":"b","value":"x"}}`, 3.0, -32602, "has not said what it can be set to"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/set_config_option","params":{"sessionId":"` + session + `","configId":"b","value":7}}`, 3.0, -32602, "value: want a string or a boolean"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/fork","params":{"sessionId":"nope","cwd":"/a"}}`, 3.0, -32002, "nope"},
			{`{"jsonrpc":"2.0","id":3,"method":"authenticate","params":{"methodId":"x"}}`, 3.0, -32602, "--token"},
			{`{"jsonrpc":"2.0","id":3,"method":"session/list","params":{"cursor":5}}`, 3.0, -32602, "cursor"},
		} {
			c.send("%s", tt.send)
			c.wantError(tt.id, tt.code, tt.want)
		}
		for _, ignored := range []string{
			`{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"nope"}}`,
			`{"jsonrpc":"2.0","method":"session/cancel"}`,
			`{"jsonrpc":"2.0","method":"_zed/note"}`,
			`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}`,
			`{"jsonrpc":"2.0","id":12345,"result":{}}`,
		} {
			c.send("%s", ignored)
		}
		c.wantNothing()
		s.say(task, core.Done{})
		c.want(ended(2, "end_turn"))
	})
}

func TestAMessageOverTheLimitIsRefusedWithItsID(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{MaxMessageBytes: 2000}, none)
		c.prompt(7, session, strings.Repeat("x", 3000))
		c.wantError(7.0, -32600, "limit of 2000 bytes")
		c.prompt(8, session, "short")
		task := s.assigned()
		s.say(task, core.ToolResult{ID: "t", Output: strings.Repeat("y", 3000)}, core.Done{})
		if m := c.receive(); !strings.Contains(m.raw, "tool_result of") || !strings.Contains(m.raw, "dragoman tail") {
			t.Errorf("got %s, want where the rest is", m.raw)
		}
		c.want(ended(8, "end_turn"))
	})
}

func TestWhatAnEditorOffersInVainIsCountedOnce(t *testing.T) {
	withHub(t, func(s *setup) {
		c := s.greeted(editor.Options{}, `{"fs":{"readTextFile":true,"writeTextFile":true},"terminal":true}`)
		for id := range 2 {
			c.send(`{"jsonrpc":"2.0","id":%d,"method":"session/new","params":{"cwd":"/a","mcpServers":[{"name":"x","command":"x","args":[],"env":[]}]}}`, id)
			c.receive()
		}
		for _, name := range []string{"editor.refused.capabilities", "editor.refused.mcp_servers"} {
			if got := s.hub.Counters()[name]; got != 1 {
				t.Errorf("%s: got %d, want 1", name, got)
			}
		}
	})
}

func TestWhatAnEditorAgentSaysPassesUntouched(t *testing.T) {
	withHub(t, func(s *setup) {
		c, session := s.begun(editor.Options{}, none)
		c.prompt(2, session, "run")
		task := s.assigned()
		plan := `{"sessionUpdate":"plan","entries":[{"content":"a","priority":"high","status":"pending","x":1}]}`
		s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "plan"}, plan)
		odd := `{"sessionUpdate":"hologram","z":[1]}`
		s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "hologram"}, odd)
		s.sayForeign(task, core.Text{Text: "hi"}, `{"messageId":"m1","content":{"annotations":{"priority":1}}}`)
		call := `{"sessionUpdate":"tool_call","toolCallId":"t1","title":"Edit","kind":"edit","locations":[{"path":"/a"}]}`
		s.sayForeign(task, core.ToolCall{ID: "t1", Name: "Edit"}, call)
		s.sayForeign(task, core.ToolState{ID: "t1", State: core.ToolCompleted}, `{}`)
		window := `{"sessionUpdate":"usage_update","used":5,"size":100}`
		s.sayForeign(task, core.Usage{Input: 5}, window)
		s.sayForeign(task, core.Done{}, `{"usage":{"inputTokens":5,"extra":1},"_meta":{"q":1},"stopReason":"max_turn_requests"}`)
		c.want(plan, odd,
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi","annotations":{"priority":1}},"messageId":"m1"}`,
			call, window,
			`{"jsonrpc":"2.0","id":2,"result":{"stopReason":"max_turn_requests","usage":{"inputTokens":5,"extra":1},"_meta":{"q":1}}}`)
	})
}

func TestACompactionIsAThoughtToAnEditorThatShowsNone(t *testing.T) {
	begun := `{"sessionUpdate":"compaction_update","compactionId":"c","status":"in_progress"}`
	summary := `{"sessionUpdate":"compaction_summary_chunk","compactionId":"c","content":{"type":"text","text":"so far"}}`
	for capabilities, want := range map[string][]string{
		none:                              {chunk("agent_thought_chunk", "compaction: in progress\n")},
		`{"session":{"compaction":{}}}`:   {begun, summary},
		`{"session":{"compaction":null}}`: {chunk("agent_thought_chunk", "compaction: in progress\n")},
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, capabilities)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.sayForeign(task, core.Thinking{Text: "compaction: in progress\n"}, begun)
			s.sayForeign(task, core.ForeignFrame{Dialect: editor.Dialect, Name: "compaction_summary_chunk"}, summary)
			s.say(task, core.Done{})
			c.want(append(want, ended(2, "end_turn"))...)
		})
	}
}

func TestANoticeIsAThoughtToAnEditorThatShowsNone(t *testing.T) {
	notice := `{"sessionUpdate":"notice","severity":"warning","title":"Old model"}`
	for capabilities, want := range map[string]string{
		none: chunk("agent_thought_chunk", "warning: Old model\n"), `{"session":{"notices":{}}}`: notice, `{"session":{"notices":null}}`: chunk("agent_thought_chunk", "warning: Old model\n"),
	} {
		withHub(t, func(s *setup) {
			c, session := s.begun(editor.Options{}, capabilities)
			c.prompt(2, session, "run")
			task := s.assigned()
			s.sayForeign(task, core.Thinking{Text: "warning: Old model\n"}, notice)
			s.say(task, core.Done{})
			c.want(want, ended(2, "end_turn"))
		})
	}
}
