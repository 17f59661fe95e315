package render_test

import (
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

var atNoon = time.UnixMilli(1_795_210_147_791)

// numbered returns the bodies as the events of one task.
func numbered(bodies ...core.Body) []core.Event {
	events := make([]core.Event, len(bodies))
	for i, b := range bodies {
		events[i] = core.Event{Seq: uint64(i + 1), Epoch: 1, At: atNoon, Body: b}
	}
	return events
}

func testTask() render.Task {
	return render.Task{
		Envelope: render.NewEnvelope("s1"), ID: "0198c0de-0000-7000-8000-000000000000", ApprovalTimeout: 300 * time.Second, MaxAttempts: 2,
	}
}

// view is a View of the test's task, with its own Frames.
type view struct {
	render.View
	out render.Frames
}

func newView(how render.Snapshots) *view {
	v := &view{}
	v.Begin(testTask(), &v.out, how)
	return v
}

// newRecord returns a View without frames.
func newRecord() *view {
	v := &view{}
	v.Begin(testTask(), nil, 0)
	return v
}

// take returns and removes the frames so far.
func (v *view) take() [][]byte {
	v.Flush()
	var c collector
	v.out.Send(context.Background(), &c)
	return c
}

// collector keeps the frames that are sent.
type collector [][]byte

func (c *collector) SendThen(_ context.Context, frame []byte, _ int, sent func()) error {
	*c = append(*c, slices.Clone(frame))
	if sent != nil {
		sent()
	}
	return nil
}

// rendered returns the events that the bodies are rendered as, in the short form of the
// captured sequences (see brief). Each body is a separate batch.
func rendered(t *testing.T, how render.Snapshots, bodies ...core.Body) []string {
	t.Helper()
	v := newView(how)
	var lines []string
	for _, e := range numbered(bodies...) {
		if err := e.Deliver(v); err != nil {
			t.Fatal(err)
		}
		for _, frame := range v.take() {
			lines = append(lines, brief(t, frame))
		}
	}
	return lines
}

// brief removes the constant members of a frame: the envelope, the model, empty usage and
// the timestamp. From an update it removes the snapshots, after checking that they are
// equal.
func brief(t *testing.T, frame []byte) string {
	t.Helper()
	var f struct {
		Type      string         `json:"type"`
		SessionID string         `json:"sessionId"`
		Event     map[string]any `json:"event"`
	}
	if err := json.Unmarshal(frame, &f); err != nil {
		t.Fatalf("frame %s: %v", frame, err)
	}
	if f.Type != "event" || f.SessionID != "s1" {
		t.Fatalf("frame %s: got type %q of session %q, want an event of s1", frame, f.Type, f.SessionID)
	}
	if u, ok := f.Event["assistantMessageEvent"].(map[string]any); ok {
		if p, ok := u["partial"]; ok {
			if diff := cmp.Diff(p, f.Event["message"]); diff != "" {
				t.Fatalf("partial and message differ in %s:\n%s", frame, diff)
			}
		}
		delete(u, "partial")
		delete(f.Event, "message")
	}
	return string(strictjson.Encode(trim(f.Event)))
}

func trim(v any) any {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "timestamp")
		if v["role"] == conversation.RoleAssistant {
			delete(v, "api")
			delete(v, "provider")
			delete(v, "model")
			if u := v["usage"].(map[string]any); u["totalTokens"] == 0.0 {
				delete(v, "usage")
			} else {
				delete(u, "cost")
			}
		}
		for _, x := range v {
			trim(x)
		}
	case []any:
		for _, x := range v {
			trim(x)
		}
	}
	return v
}

func wantEvents(t *testing.T, got []string, want string) {
	t.Helper()
	var lines []string
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if len(got) == 1 {
		lines = []string{strings.Join(lines, " ")}
	}
	if diff := cmp.Diff(lines, got); diff != "" {
		t.Errorf("events differ (-want +got):\n%s", diff)
	}
}

// The sequence of the facts, section 5.1, from the assistant's first message on.
func TestARunWithTextAndAToolIsRenderedAsByPiServer(t *testing.T) {
	for _, how := range []render.Snapshots{render.SnapshotsAll, render.SnapshotsNone} {
		got := rendered(t, how,
			core.Opened{}, core.Assigned{Agent: "a", Attempt: 1}, core.Accepted{},
			core.Text{Text: "Running "}, core.Text{Text: "it."},
			core.ToolCall{ID: "call_1", Name: "bash", Input: `{"command":"echo hi"}`},
			core.Usage{Input: 100, Output: 10},
			core.ToolState{ID: "call_1", State: core.ToolRunning},
			core.ToolResult{ID: "call_1", Output: "hi\n"},
			core.Text{Text: "Hello "}, core.Text{Text: "world"},
			core.Usage{Input: 100, Output: 10}, core.Done{})
		wantEvents(t, got, `
			{"message":{"content":[],"role":"assistant","stopReason":"stop"},"type":"message_start"}
			{"assistantMessageEvent":{"contentIndex":0,"type":"text_start"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":0,"delta":"Running ","type":"text_delta"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":0,"delta":"it.","type":"text_delta"},"type":"message_update"}
			{"assistantMessageEvent":{"content":"Running it.","contentIndex":0,"type":"text_end"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":1,"type":"toolcall_start"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":1,"delta":"{\"command\":\"echo hi\"}","type":"toolcall_delta"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":1,"toolCall":{"arguments":{"command":"echo hi"},"id":"call_1","name":"bash","type":"toolCall"},"type":"toolcall_end"},"type":"message_update"}
			{"message":{"content":[{"text":"Running it.","type":"text"},{"arguments":{"command":"echo hi"},"id":"call_1","name":"bash","type":"toolCall"}],"role":"assistant","stopReason":"toolUse","usage":{"cacheRead":0,"cacheWrite":0,"input":100,"output":10,"totalTokens":110}},"type":"message_end"}
			{"args":{"command":"echo hi"},"toolCallId":"call_1","toolName":"bash","type":"tool_execution_start"}
			{"args":{"command":"echo hi"},"partialResult":{"content":[],"details":{"state":"running"}},"toolCallId":"call_1","toolName":"bash","type":"tool_execution_update"}
			{"isError":false,"result":{"content":[{"text":"hi\n","type":"text"}]},"toolCallId":"call_1","toolName":"bash","type":"tool_execution_end"}
			{"message":{"content":[{"text":"hi\n","type":"text"}],"isError":false,"role":"toolResult","toolCallId":"call_1","toolName":"bash"},"type":"message_start"}
			{"message":{"content":[{"text":"hi\n","type":"text"}],"isError":false,"role":"toolResult","toolCallId":"call_1","toolName":"bash"},"type":"message_end"}
			{"message":{"content":[{"text":"Running it.","type":"text"},{"arguments":{"command":"echo hi"},"id":"call_1","name":"bash","type":"toolCall"}],"role":"assistant","stopReason":"toolUse","usage":{"cacheRead":0,"cacheWrite":0,"input":100,"output":10,"totalTokens":110}},"toolResults":[{"content":[{"text":"hi\n","type":"text"}],"isError":false,"role":"toolResult","toolCallId":"call_1","toolName":"bash"}],"type":"turn_end"}
			{"type":"turn_start"}
			{"message":{"content":[],"role":"assistant","stopReason":"stop"},"type":"message_start"}
			{"assistantMessageEvent":{"contentIndex":0,"type":"text_start"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":0,"delta":"Hello ","type":"text_delta"},"type":"message_update"}
			{"assistantMessageEvent":{"contentIndex":0,"delta":"world","type":"text_delta"},"type":"message_update"}
			{"assistantMessageEvent":{"content":"Hello world","contentIndex":0,"type":"text_end"},"type":"message_update"}
			{"message":{"content":[{"text":"Hello world","type":"text"}],"role":"assistant","stopReason":"stop","usage":{"cacheRead":0,"cacheWrite":0,"input":100,"output":10,"totalTokens":110}},"type":"message_end"}
			{"message":{"content":[{"text":"Hello world","type":"text"}],"role":"assistant","stopReason":"stop","usage":{"cacheRead":0,"cacheWrite":0,"input":100,"output":10,"totalTokens":110}},"toolResults":[],"type":"turn_end"}
		`)
	}
}

func TestThinkingAndTextAreSeparateBlocks(t *testing.T) {
	got := rendered(t, render.SnapshotsAll, core.Thinking{Text: "hm"}, core.Text{Text: "yes"}, core.Done{Text: "ignored: the text was streamed"})
	wantEvents(t, got, `
		{"message":{"content":[],"role":"assistant","stopReason":"stop"},"type":"message_start"}
		{"assistantMessageEvent":{"contentIndex":0,"type":"thinking_start"},"type":"message_update"}
		{"assistantMessageEvent":{"contentIndex":0,"delta":"hm","type":"thinking_delta"},"type":"message_update"}
		{"assistantMessageEvent":{"content":"hm","contentIndex":0,"type":"thinking_end"},"type":"message_update"}
		{"assistantMessageEvent":{"contentIndex":1,"type":"text_start"},"type":"message_update"}
		{"assistantMessageEvent":{"contentIndex":1,"delta":"yes","type":"text_delta"},"type":"message_update"}
		{"assistantMessageEvent":{"content":"yes","contentIndex":1,"type":"text_end"},"type":"message_update"}
		{"message":{"content":[{"thinking":"hm","type":"thinking"},{"text":"yes","type":"text"}],"role":"assistant","stopReason":"stop"},"type":"message_end"}
		{"message":{"content":[{"thinking":"hm","type":"thinking"},{"text":"yes","type":"text"}],"role":"assistant","stopReason":"stop"},"toolResults":[],"type":"turn_end"}
	`)
}

func TestAFailureIsAMessageWithAnError(t *testing.T) {
	got := rendered(t, render.SnapshotsAll, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "boom")})
	wantEvents(t, got[len(got)-2:], `
		{"message":{"content":[{"text":"half","type":"text"}],"errorMessage":"boom","role":"assistant","stopReason":"error"},"type":"message_end"}
		{"message":{"content":[{"text":"half","type":"text"}],"errorMessage":"boom","role":"assistant","stopReason":"error"},"toolResults":[],"type":"turn_end"}
	`)
	got = rendered(t, render.SnapshotsAll, core.CancelRequested{}, core.Cancelled{})
	wantEvents(t, got, `
		{"message":{"content":[],"role":"assistant","stopReason":"stop"},"type":"message_start"}
		{"message":{"content":[],"errorMessage":"Request was aborted.","role":"assistant","stopReason":"aborted"},"type":"message_end"}
		{"message":{"content":[],"errorMessage":"Request was aborted.","role":"assistant","stopReason":"aborted"},"toolResults":[],"type":"turn_end"}
	`)
}

func TestARetryIsRenderedWithItsOutcome(t *testing.T) {
	got := rendered(t, render.SnapshotsAll, core.Assigned{Agent: "a"},
		core.Retrying{Attempt: 1, Agent: "a", Fault: core.NewFault(core.CodeUnreachable, "gone")}, core.Assigned{Agent: "b"}, core.Text{Text: "x"})
	wantEvents(t, got[:2], `
		{"attempt":1,"delayMs":0,"errorMessage":"gone","maxAttempts":2,"type":"auto_retry_start"}
		{"attempt":1,"success":true,"type":"auto_retry_end"}
	`)
	got = rendered(t, render.SnapshotsAll, core.Retrying{Attempt: 2, Agent: "a", Fault: core.NewFault(core.CodeUnreachable, "gone")},
		core.Failed{Fault: core.NewFault(core.CodeUnreachable, "all gone")})
	wantEvents(t, got[:2], `
		{"attempt":2,"delayMs":0,"errorMessage":"gone","maxAttempts":2,"type":"auto_retry_start"}
		{"attempt":2,"finalError":"all gone","success":false,"type":"auto_retry_end"}
	`)
}

func TestConcurrentToolsKeepTheirResults(t *testing.T) {
	got := rendered(t, render.SnapshotsNone,
		core.ToolCall{ID: "1", Name: "read", Input: "{}"}, core.ToolState{ID: "1", State: core.ToolPending},
		core.ToolCall{ID: "2", Name: "write", Input: "not json"},
		core.ToolResult{ID: "2", Output: "no", IsError: true},
		core.Text{Text: "meanwhile"},
		core.ToolResult{ID: "1", Output: "yes"},
		core.Done{})
	wantEvents(t, kindsOnly(t, got), `
		message_start message_update/toolcall_start message_update/toolcall_delta message_update/toolcall_end
		message_update/toolcall_start message_update/toolcall_delta message_update/toolcall_end message_end
		tool_execution_start tool_execution_start tool_execution_end message_start message_end turn_end
		turn_start message_start message_update/text_start message_update/text_delta tool_execution_end
		message_update/text_end message_end message_start message_end turn_end
	`)
	for _, line := range []string{
		`{"isError":true,"result":{"content":[{"text":"no","type":"text"}]},"toolCallId":"2","toolName":"write","type":"tool_execution_end"}`,
		`{"args":{"input":"not json"},"toolCallId":"2","toolName":"write","type":"tool_execution_start"}`,
		`{"isError":false,"result":{"content":[{"text":"yes","type":"text"}]},"toolCallId":"1","toolName":"read","type":"tool_execution_end"}`,
	} {
		if !strings.Contains(strings.Join(got, "\n"), line) {
			t.Errorf("got\n%s\nwant it to contain\n%s", strings.Join(got, "\n"), line)
		}
	}
}

// kindsOnly returns the types of the events as one line.
func kindsOnly(t *testing.T, lines []string) []string {
	t.Helper()
	var kinds []string
	for _, l := range lines {
		var e struct {
			Type   string `json:"type"`
			Update struct {
				Type string `json:"type"`
			} `json:"assistantMessageEvent"`
		}
		if err := json.Unmarshal([]byte(l), &e); err != nil {
			t.Fatal(err)
		}
		w := e.Type
		if e.Update.Type != "" {
			w += "/" + e.Update.Type
		}
		kinds = append(kinds, w)
	}
	return []string{strings.Join(kinds, " ")}
}

func TestACallWithoutAResultEndsWithTheRun(t *testing.T) {
	got := rendered(t, render.SnapshotsNone, core.ToolCall{ID: "1", Name: "read"}, core.ToolState{ID: "1", State: core.ToolDenied, Detail: "no"}, core.Done{})
	wantEvents(t, kindsOnly(t, got), `
		message_start message_update/toolcall_start message_update/toolcall_delta message_update/toolcall_end message_end
		tool_execution_start tool_execution_update tool_execution_end message_start message_end turn_end
		turn_start message_start message_end turn_end
	`)
	want := `{"isError":true,"result":{"content":[{"text":"denied: no","type":"text"}]},"toolCallId":"1","toolName":"read","type":"tool_execution_end"}`
	if got[7] != want {
		t.Errorf("got %s\nwant %s", got[7], want)
	}
	got = rendered(t, render.SnapshotsNone, core.ToolResult{ID: "9", Output: "out of the blue"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "x")})
	wantEvents(t, kindsOnly(t, got), `
		tool_execution_start tool_execution_end message_start message_end message_start message_end turn_end
	`)
}

func TestAnInjectionIsShownWhereTheAgentAcceptedIt(t *testing.T) {
	got := rendered(t, render.SnapshotsNone, core.Text{Text: "one"}, core.Injected{ID: "i", Content: "stop that"}, core.Text{Text: " two"},
		core.InjectionAnswered{ID: "i", Accepted: true}, core.Text{Text: "three"}, core.Done{})
	wantEvents(t, kindsOnly(t, got), `
		message_start message_update/text_start message_update/text_delta message_update/text_delta message_update/text_end
		message_end turn_end turn_start message_start message_end
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end turn_end
	`)
	want := `{"message":{"content":[{"text":"stop that","type":"text"}],"role":"user"},"type":"message_start"}`
	if got[8] != want {
		t.Errorf("got %s\nwant %s", got[8], want)
	}
	// An unanswered injection is shown at the end; a refused one belongs to another turn.
	got = rendered(t, render.SnapshotsNone, core.Injected{ID: "i", Content: "stop that"}, core.Injected{ID: "j", Content: "no"},
		core.InjectionAnswered{ID: "j"}, core.Text{Text: "x"}, core.Done{})
	wantEvents(t, kindsOnly(t, got), `
		message_start message_update/text_start message_update/text_delta message_update/text_end message_end
		message_start message_end turn_end
	`)
}

func TestAnApprovalAsksTheClientAndItsDecisionIsShown(t *testing.T) {
	got := rendered(t, render.SnapshotsNone, core.ToolCall{ID: "1", Name: "rm", Input: `{"path":"/"}`},
		core.ApprovalRequested{ID: "1", Name: "rm", Input: `{"path":"/"}`}, core.ApprovalDecided{ID: "1", By: "hub", Reason: "nobody decided in time"})
	wantEvents(t, got[len(got)-2:], `
		{"message":"{\"path\":\"/\"}","method":"confirm","requestId":"0198c0de-0000-7000-8000-000000000000:1-2","timeout":300000,"title":"Allow rm?","type":"extension_ui_request"}
		{"message":"rm: denied by hub: nobody decided in time","method":"notify","notifyType":"info","requestId":"notify-1795210147791","type":"extension_ui_request"}
	`)
}

func TestEventsThatPiLacksAreFolded(t *testing.T) {
	var counted []string
	task := testTask()
	task.Count = func(what string) { counted = append(counted, what) }
	v := newView(render.SnapshotsNone)
	v.Begin(task, &v.out, render.SnapshotsNone)
	events := numbered(
		core.File{Name: "a.txt", MediaType: "text/plain", Data: []byte("inside")},
		core.File{Name: "b.bin", MediaType: "application/zip", Data: []byte{1, 2}},
		core.File{Name: "c.png", MediaType: "image/png", Data: []byte{3}},
		core.SessionLost{Reason: "restart"},
		core.ForeignFrame{Dialect: "coven", Name: "mood"},
		core.Done{Text: "bye", Data: json.RawMessage(`{"a":1}`), Truncated: true})
	events[4].Foreign = &core.Foreign{Dialect: "coven", JSON: json.RawMessage(`{"x":[1]}`), Wire: []byte{7}}
	for _, e := range events {
		if err := e.Deliver(v); err != nil {
			t.Fatal(err)
		}
	}
	var all strings.Builder
	for _, f := range v.take() {
		all.WriteString(brief(t, f) + "\n")
	}
	for _, want := range []string{
		`[file a.txt, text/plain, 6 bytes]\ninside`,
		`[file b.bin, application/zip, 2 bytes]`,
		`"details":{"data":"AQI=","mediaType":"application/zip","name":"b.bin"}`,
		`{"data":"Aw==","mimeType":"image/png","type":"image"}`,
		`"message":"the agent has lost its own session: restart","method":"notify"`,
		`{"dialect":"coven","frame":{"x":[1]},"name":"mood","type":"foreign_frame","wire":"Bw=="}`,
		`"text":"{\"a\":1}"`,
		`"text":"bye"`,
		`"stopReason":"length"`,
	} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("got\n%s\nwant it to contain %s", all.String(), want)
		}
	}
	want := []string{"folded.file", "folded.file", "folded.file", "folded.session_lost", "folded.foreign", "folded.data"}
	if diff := cmp.Diff(want, counted); diff != "" {
		t.Errorf("counted (-want +got):\n%s", diff)
	}
}

func TestApprovalIDsRoundTripAndAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := core.Event{Epoch: rapid.Uint32().Draw(t, "epoch"), Seq: rapid.Uint64().Draw(t, "seq")}
		id := render.RequestID("0198c0de-0000-7000-8000-000000000000", e)
		if !regexp.MustCompile(`^[a-zA-Z0-9:_-]+$`).MatchString(id) {
			t.Fatalf("request id %q does not pass validation", id)
		}
		task, back, ok := render.ParseRequestID(id)
		if !ok || back != e.Cursor() || task != "0198c0de-0000-7000-8000-000000000000" {
			t.Fatalf("render.ParseRequestID(%q): got %v %v %v", id, task, back, ok)
		}
	})
}
