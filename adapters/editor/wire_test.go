package editor_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

func parse(t testing.TB, text string) strictjson.Value {
	t.Helper()
	v, err := strictjson.Parse([]byte(text), strictjson.Limits{})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

// A text is what somebody sends, and how its values are written again.
type text struct{ in, out string }

// same is a text that is written as it was read.
func same(s string) text { return text{s, s} }

// texts has params and results of every method by the types that read them.
var texts = map[string][]text{
	"initialize": {
		same(`{"protocolVersion":1,"clientCapabilities":{"fs":{"readTextFile":true,"writeTextFile":false},"terminal":true,"session":{"notices":{}},"elicitation":{"form":{}}},"clientInfo":{"name":"zed","title":"Zed","version":"1"},"_meta":{"a":1}}`),
		{`{"protocolVersion":2}`, `{"protocolVersion":2,"clientCapabilities":{"fs":{"readTextFile":false,"writeTextFile":false},"terminal":false}}`},
	},
	"initialized": {
		same(`{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"promptCapabilities":{"image":true,"audio":false,"embeddedContext":true},"mcpCapabilities":{"http":true,"sse":false},"sessionCapabilities":{"list":{},"resume":{}}},"authMethods":[{"id":"k","name":"Key"},{"type":"terminal","id":"t","name":"T","args":["login"],"env":{"A":"b"}}],"agentInfo":{"name":"a","version":"0"}}`),
	},
	"authenticate": {same(`{"methodId":"k","_meta":{}}`)},
	"session/new": {
		same(`{"cwd":"/w","mcpServers":[{"name":"f","command":"npx","args":["-y"],"env":[{"name":"A","value":"b"}]},{"type":"http","name":"s","url":"https://example.com","headers":[{"name":"H","value":"v"}]}]}`),
		{`{"cwd":"C:\\w","mcpServers":[{"name":"f","command":"npx"}]}`, `{"cwd":"C:\\w","mcpServers":[{"name":"f","command":"npx","args":[],"env":[]}]}`},
	},
	"session/load": {same(`{"sessionId":"s","cwd":"/w","additionalDirectories":["/x"],"mcpServers":[],"_meta":{"k":[1]}}`)},
	"session":      {{`{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]},"configOptions":[]}`, `{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"}]}}`}},
	"cancel":       {same(`{"sessionId":"s"}`)},
	"list":         {same(`{"cwd":"/w","cursor":"c"}`)},
	"listed":       {same(`{"sessions":[{"sessionId":"s","cwd":"/w","title":"t","updatedAt":"2026-01-01T00:00:00Z"}],"nextCursor":"n"}`)},
	"prompt": {
		same(`{"sessionId":"s","prompt":[{"type":"text","text":""},{"type":"image","data":"aGk=","mimeType":"image/png","uri":"file:///a"},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},{"type":"resource_link","uri":"file:///a","name":"a","size":3},{"type":"resource","resource":{"text":"","uri":"u"}},{"type":"resource","resource":{"mimeType":"m","uri":"u","blob":"aGk="},"annotations":{"priority":1}}]}`),
	},
	"prompted":    {same(`{"stopReason":"end_turn","usage":{"inputTokens":5,"outputTokens":4,"totalTokens":9},"_meta":{"q":1}}`)},
	"permission":  {same(`{"sessionId":"s","toolCall":{"toolCallId":"t","title":"Write","rawInput":{"a":[1]}},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]}`)},
	"permitted":   {same(`{"outcome":{"outcome":"selected","optionId":"a"}}`), same(`{"outcome":{"outcome":"cancelled"}}`)},
	"elicitation": {same(`{"message":"m","mode":"form","requestedSchema":{"type":"object"},"sessionId":"s","toolCallId":"t"}`), same(`{"message":"m","mode":"url","requestId":0,"elicitationId":"e","url":"https://example.com"}`)},
	"elicited":    {same(`{"action":"accept","content":{"a":1}}`)},
	"tool": {
		same(`{"toolCallId":"t","title":"Edit","name":"edit","kind":"edit","status":"completed","content":[{"type":"content","content":{"type":"text","text":"x"}},{"type":"diff","path":"/a","oldText":"","newText":"b"},{"type":"terminal","terminalId":"t"}],"locations":[{"path":"/a","line":3}],"rawInput":null,"rawOutput":"x"}`),
	},
	"withdraw": {
		same(`{"requestId":"a"}`),
	},
}

// codecs read a text and write it again.
var codecs = map[string]func(strictjson.Value) (json.RawMessage, error){
	"initialize": codec[wire.InitializeRequest], "initialized": codec[wire.InitializeResponse], "authenticate": codec[wire.AuthenticateRequest],
	"session/new": codec[wire.NewSessionRequest], "session/load": codec[wire.OpenSessionRequest], "session": codec[wire.SessionState],
	"cancel": codec[wire.SessionRequest], "list": codec[wire.ListSessionsRequest], "listed": codec[wire.ListSessionsResponse],
	"prompt":   codec[wire.PromptRequest],
	"prompted": codec[wire.PromptResponse], "permission": codec[wire.PermissionRequest], "permitted": codec[wire.PermissionResponse],
	"elicitation": codec[wire.ElicitationRequest], "elicited": codec[wire.ElicitationResponse], "tool": codec[wire.ToolCall],
	"withdraw": codec[wire.CancelRequest],
}

func codec[P any](v strictjson.Value) (json.RawMessage, error) {
	p, fault := wire.Read[P](v)
	if fault != nil {
		return nil, fault
	}
	out, err := json.Marshal(p)
	if err != nil {
		return nil, errUnwritable
	}
	return out, nil
}

// errUnwritable is the error for content of an unknown type, which is read and not written.
var errUnwritable = errors.New("it cannot be written")

func TestEveryMethodIsReadAndWrittenAgain(t *testing.T) {
	for name, all := range texts {
		for _, c := range all {
			got, err := codecs[name](parse(t, c.in))
			if err != nil {
				t.Errorf("%s: %s: %v", name, c.in, err)
				continue
			}
			if string(got) != c.out {
				t.Errorf("%s:\n got %s\nwant %s", name, got, c.out)
			}
		}
	}
}

func TestWhatIsWrittenIsOfTheSchemaOfTheProtocol(t *testing.T) {
	params := map[string]string{
		"initialize": "initialize", "authenticate": "authenticate", "session/new": "session/new", "session/load": "session/load", "cancel": "session/cancel",
		"list": "session/list", "prompt": "session/prompt",
		"permission": "session/request_permission", "elicitation": "elicitation/create", "withdraw": "$/cancel_request",
	}
	results := map[string]string{
		"initialized": "initialize", "session": "session/new", "listed": "session/list", "prompted": "session/prompt",
		"permitted": "session/request_permission", "elicited": "elicitation/create",
	}
	for name, all := range texts {
		schema := schemas.EditorResult(results[name])
		if method := params[name]; method != "" {
			schema = schemas.Editor(method)
		}
		for _, c := range all {
			if schema == nil {
				if name != "tool" { // a part of others
					t.Errorf("%s has no schema", name)
				}
			} else if err := schema.Validate([]byte(c.out)); err != nil {
				t.Errorf("%s: %s: %v", name, c.out, err)
			}
		}
	}
}

func TestWhatIsMissingIsNamedWithWhatToSend(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"initialize", `{}`, "protocolVersion: missing; send 1"},
		{"initialize", `{"protocolVersion":"1"}`, "protocolVersion: want a whole number, got a string"},
		{"initialize", `[]`, "want an object, got []"},
		{"authenticate", `{}`, "methodId: missing; send a string"},
		{"session/new", `{"cwd":"w","mcpServers":[]}`, `cwd: want an absolute path, got "w"`},
		{"session/new", `{"cwd":"/w","mcpServers":[{"name":"x"}]}`, "mcpServers[0].command: missing; send a command, or a url with the type http"},
		{"session/load", `{"cwd":"/w"}`, "sessionId: missing; send a string"},
		{"prompt", `{"sessionId":"s","prompt":[]}`, "prompt: missing; send at least one content block"},
		{"prompt", `{"sessionId":"s","prompt":[{"text":"x"}]}`, "prompt[0].type: missing; send text, image, audio, resource_link or resource"},
		{"prompt", `{"sessionId":"s","prompt":[{"type":"resource"}]}`, "prompt[0].resource: missing; send an object with a uri and a text or a blob"},
		{"prompt", `{"sessionId":"s","prompt":[{"type":"image","data":"%","mimeType":"image/png"}]}`, "prompt[0].data: "},
		{"prompted", `{}`, "stopReason: missing; send a string"},
		{"permission", `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[]}`, "options: missing; send at least one option"},
		{"permission", `{"sessionId":"s","options":[{}]}`, "toolCall.toolCallId: missing; send a string"},
		{"permitted", `{"outcome":{"outcome":"maybe"}}`, `outcome.outcome: want selected or cancelled, got "maybe"`},
		{"elicitation", `{"message":"m"}`, "mode: missing; send form or url"},
		{"elicitation", `{"mode":"form","message":"m"}`, "requestedSchema: missing; send a schema of an object"},
		{"tool", `{"title":"x"}`, "toolCallId: missing; send a string"},
	} {
		_, err := codecs[c.name](parse(t, c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: got %v, want %s", c.name, c.in, err, c.want)
		}
	}
}

func TestABlockOfAnUnknownTypeIsReadAndNotWritten(t *testing.T) {
	p, fault := wire.Read[wire.PromptRequest](parse(t, `{"sessionId":"s","prompt":[{"type":"hologram","depth":3}]}`))
	if fault != nil || p.Prompt[0].Type != "hologram" {
		t.Fatalf("got %+v, %v", p, fault)
	}
	if _, err := json.Marshal(p); err == nil {
		t.Error("got a block of an unknown type written, want an error")
	}
}

func TestTheOptionOfAPermissionIsFoundByItsKind(t *testing.T) {
	p, _ := wire.Read[wire.PermissionRequest](parse(t, `{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"1","name":"","kind":"reject_always"},{"optionId":"2","name":"","kind":"allow_once"}]}`))
	if o, ok := p.Option(wire.AllowAlways, wire.AllowOnce); !ok || o.OptionID != "2" {
		t.Errorf("got %+v, %v, want the option 2", o, ok)
	}
	if o, ok := p.Option(wire.RejectOnce); ok {
		t.Errorf("got %+v, want none", o)
	}
}
