package pirpc_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

// lines are lines of pi, and what they mean. They seed the fuzz target.
var lines = []struct {
	line string
	want wire.Event
}{
	{`{"id":"r1","type":"response","command":"prompt","success":true}`, &wire.Response{ID: "r1", Command: "prompt", Success: true}},
	{`{"id":"r1","type":"response","command":"prompt","success":true,"data":{"disposition":"started"}}` + "\r", &wire.Response{ID: "r1", Command: "prompt", Success: true, Disposition: "started"}},
	{`{"type":"response","command":"nonsense","success":false,"error":"Unknown command: nonsense"}`, &wire.Response{Command: "nonsense", Error: "Unknown command: nonsense"}},
	{`{"type":"agent_start"}`, &wire.RunStart{}},
	{`{"type":"turn_end","message":{"role":"assistant"},"toolResults":[]}`, &wire.Turn{}},
	{`{"type":"message_start","message":{"role":"user","content":[{"type":"text","text":"hi"}],"timestamp":1795316642532}}`, &wire.MessageStart{Message: wire.Message{Role: "user"}}},
	{
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":1,"delta":"HE\u2028LLO","partial":{"content":[{"type":"text","text":"more"}]}},"message":{}}`,
		&wire.Update{Kind: "text_delta", Index: 1, Delta: "HE\u2028LLO"},
	},
	{
		`{"type":"message_update","usage":{"input":1},"assistantMessageEvent":{"type":"thinking_delta","contentIndex":0,"delta":"hm"}}`,
		&wire.Update{Kind: "thinking_delta", Delta: "hm"},
	},
	{`{"type":"message_update","assistantMessageEvent":{"type":"done","contentIndex":null,"delta":null,"content":null,"reason":"stop"}}`, &wire.Update{Kind: "done"}},
	{`{"type":"message_update","assistantMessageEvent":{"type":"text_end","contentIndex":0,"content":"HELLO"}}`, &wire.Update{Kind: "text_end"}},
	{`{"type":"message_update","assistantMessageEvent":{"type":"toolcall_end","contentIndex":0,"toolCall":{"id":"t","name":"x","arguments":{}}}}`, &wire.Update{Kind: "toolcall_end"}},
	{
		`{"type":"message_end","message":{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"thinking","thinking":"b"},{"type":"text","text":"c"}],` +
			`"usage":{"input":5,"output":4,"reasoning":1,"cacheRead":3,"cacheWrite":2,"totalTokens":14,"cost":{"input":0.001,"output":0.0001,"total":0.0011}},"stopReason":"stop","provider":"stub","model":"m1"}}`,
		&wire.MessageEnd{Message: wire.Message{
			Role: "assistant", Text: "ac", Thoughts: map[int]string{1: "b"}, StopReason: "stop",
			Usage: core.Usage{Input: 5, Output: 3, CacheRead: 3, CacheWrite: 2, Thinking: 1, Model: "m1", Cost: core.Money{Nanos: 1_100_000, Currency: "USD"}},
		}},
	},
	{
		`{"type":"message_end","message":{"role":"assistant","content":null,"stopReason":"error","errorMessage":"503"}}`,
		&wire.MessageEnd{Message: wire.Message{Role: "assistant", StopReason: "error", ErrorMessage: "503"}},
	},
	{`{"type":"agent_end","messages":[]}`, &wire.RunEnd{}},
	{`{"type":"agent_end","messages":[],"willRetry":false}`, &wire.RunEnd{Settles: true}},
	{`{"type":"agent_settled","aborted":true}`, &wire.Settled{}},
	{`{"type":"tool_execution_start","toolCallId":"t","toolName":"bash","args":{"command":"ls"}}`, &wire.ToolStart{ID: "t", Name: "bash", Args: json.RawMessage(`{"command":"ls"}`)}},
	{`{"type":"tool_execution_start","toolCallId":"t/1","toolName":"read","args":{},"parentToolCallId":"t"}`, &wire.ToolStart{ID: "t/1", Name: "read", Parent: "t", Args: json.RawMessage(`{}`)}},
	{`{"type":"tool_execution_update","toolCallId":"t","toolName":"bash","args":{},"partialResult":{"content":[{"type":"text","text":"a\n"}]}}`, &wire.ToolUpdate{ID: "t", Output: "a\n"}},
	{
		`{"type":"tool_execution_end","toolCallId":"t","toolName":"read","result":{"content":[{"type":"text","text":"see"},{"type":"image","data":"AAAA","mimeType":"image/png"}],"details":{"n":1}},"isError":true}`,
		&wire.ToolEnd{ID: "t", Name: "read", Output: "see[image image/png, 3 bytes]", IsError: true, Details: json.RawMessage(`{"n":1}`)},
	},
	{`{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"503"}`, &wire.Retry{}},
	{`{"type":"auto_retry_end","success":false,"attempt":3,"finalError":"no"}`, &wire.Retry{End: true}},
	{`{"type":"compaction_end","reason":"overflow","result":null,"aborted":false,"willRetry":true}`, &wire.Compaction{End: true, WillRetry: true}},
	{
		`{"type":"extension_ui_request","id":"u","method":"select","title":"Go?","options":["Allow","Block"],"timeout":10000}`,
		&wire.Dialog{ID: "u", Method: "select", Title: "Go?", Options: []string{"Allow", "Block"}, Timeout: 10 * time.Second},
	},
	{`{"type":"extension_ui_request","id":"u","method":"notify","message":"done"}`, &wire.Dialog{ID: "u", Method: "notify", Message: "done"}},
	{`{"type":"queue_update","steering":[],"followUp":[]}`, &wire.Other{Type: "queue_update", Known: true}},
	{`{"type":"of_tomorrow"}`, &wire.Other{Type: "of_tomorrow"}},
}

func TestEachLineOfPiIsRead(t *testing.T) {
	for _, tt := range lines {
		got, err := wire.Decode([]byte(tt.line))
		if err != nil {
			t.Errorf("%s: got %v, want no error", tt.line, err)
			continue
		}
		if diff := cmp.Diff(tt.want, got, cmpopts.IgnoreTypes(strictjson.Value{}), cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".Raw" }, cmp.Ignore())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestEachLineOfPiFitsItsSchema(t *testing.T) {
	for _, tt := range lines {
		line := strictjson.ParseValid([]byte(tt.line))
		kind, _ := line.Get("type").Text()
		schema := schemas.PiRPC(kind)
		if _, other := tt.want.(*wire.Other); other && schema == nil {
			continue
		}
		if err := schema.Check(line); err != nil {
			t.Errorf("%s: got %v, want it to fit", tt.line, err)
		}
	}
}

func TestALineThatCannotBeReadSaysWhatIsWrong(t *testing.T) {
	for line, want := range map[string]string{
		`pi is starting`:                        "unexpected",
		`{"type":7}`:                            "type: want a string",
		`{"type":"message_update"}`:             "message_update: assistantMessageEvent.type",
		`{"type":"agent_end","type":"x"}`:       "type",
		`{"type":"tool_execution_end"}`:         "toolCallId",
		`{"type":"response","success":"maybe"}`: "success: want",
		`{"type":"extension_ui_request","method":"confirm","title":"Go?"}`:                          "extension_ui_request: id: want a string",
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","delta":7}}`:         "assistantMessageEvent.delta: got a number, want a string",
		`{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":-1}}`: "assistantMessageEvent.contentIndex",
	} {
		if e, err := wire.Decode([]byte(line)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v and %v, want an error with %q", line, e, err, want)
		}
	}
}

func TestCommandsAreWrittenAsPiReadsThem(t *testing.T) {
	value, yes := "Allow", true
	commands := []struct{ got, want string }{
		{string(wire.Say("d1", wire.CommandPrompt, "a\u2028<b>", nil)), `{"id":"d1","type":"prompt","message":"a\u2028\u003cb\u003e"}`},
		{
			string(wire.Say("d1", wire.CommandSteer, "", []core.File{{MediaType: "image/png", Data: []byte{1}}})),
			`{"id":"d1","type":"steer","message":"","images":[{"type":"image","data":"AQ==","mimeType":"image/png"}]}`,
		},
		{string(wire.Command("d2", wire.CommandAbort)), `{"id":"d2","type":"abort"}`},
		{string(wire.SwitchSession("d3", "/a/b.jsonl")), `{"id":"d3","type":"switch_session","sessionPath":"/a/b.jsonl"}`},
		{string(wire.Respond("u", wire.Reply{Value: &value})), `{"type":"extension_ui_response","id":"u","value":"Allow"}`},
		{string(wire.Respond("u", wire.Reply{Confirmed: &yes})), `{"type":"extension_ui_response","id":"u","confirmed":true}`},
		{string(wire.Respond("u", wire.Reply{Cancelled: true})), `{"type":"extension_ui_response","id":"u","cancelled":true}`},
	}
	for _, tt := range commands {
		if tt.got != tt.want {
			t.Errorf("got %s, want %s", tt.got, tt.want)
		}
		command := strictjson.ParseValid([]byte(tt.got))
		kind, _ := command.Get("type").Text()
		if err := schemas.PiRPC(kind).Check(command); err != nil {
			t.Errorf("%s: got %v, want it to fit its schema", tt.got, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	for _, tt := range lines {
		f.Add([]byte(tt.line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		e, err := wire.Decode(line)
		if (e == nil) == (err == nil) {
			t.Fatalf("got %v and %v, want either", e, err)
		}
		if r, is := e.(*wire.Response); is {
			_, _ = r.State()
		}
	})
}

// BenchmarkWireDelta reads a delta of 20 characters, as a new version sends it and as an old one does
// 2 KB into its answer.
func BenchmarkWireDelta(b *testing.B) {
	said := strings.Repeat("and so on and so on ", 100)
	message := `{"role":"assistant","content":[{"type":"text","text":"` + said + `"}],"usage":{"input":5,"output":4}}`
	for name, line := range map[string]string{
		"new": `{"type":"message_update","usage":{"input":100,"output":1,"cacheRead":0,"cacheWrite":0,"totalTokens":101,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}},` +
			`"assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"and so on and so on "}}`,
		"old": `{"type":"message_update","assistantMessageEvent":{"type":"text_delta","contentIndex":0,"delta":"and so on and so on ","partial":` + message + `},"message":` + message + `}`,
	} {
		b.Run(name, func(b *testing.B) {
			data := []byte(line)
			b.SetBytes(int64(len(data)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := wire.Decode(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
