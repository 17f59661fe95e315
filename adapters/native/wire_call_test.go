package native_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

const limit = 1 << 20

// golden returns one call of every act, with all that it can hold.
func golden(t *testing.T) (calls []core.Call) {
	t.Helper()
	f, err := os.Open("../../core/testdata/calls.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var c core.Call
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		calls = append(calls, c)
	}
	return calls
}

func decodeCall(t interface{ Fatalf(string, ...any) }, frame []byte) wire.Call {
	f, err := wire.Decode(frame, limit)
	c, ok := f.(wire.Call)
	if err != nil || !ok {
		t.Fatalf("%s: got %T and %v, want a call", frame, f, err)
	}
	return c
}

func TestEveryCommandSurvivesItsFrame(t *testing.T) {
	seen := map[core.Act]bool{}
	for _, c := range golden(t) {
		seen[c.Command.Act()] = true
		want := wire.Call{ID: c.ID, Trace: c.Trace, Command: c.Command}
		frame, err := wire.EncodeCall(want)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, decodeCall(t, frame), coretest.Compare); d != "" {
			t.Errorf("%s (-want +got):\n%s", c.Command.Act(), d)
		}
		text, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, decodeCall(t, []byte(`{"call":`+string(text)+`}`)), coretest.Compare); d != "" {
			t.Errorf("%s in the form of the hub (-want +got):\n%s", c.Command.Act(), d)
		}
	}
	for _, a := range core.Acts() {
		if !seen[a] {
			t.Errorf("got no call of %s among the golden ones, want one", a)
		}
	}
}

func TestWhatIsBesideACommandSurvivesItsFrame(t *testing.T) {
	want := wire.Call{
		ID: "7", Command: core.Provide{Pack: "p", Tools: []string{"a"}},
		With: wire.With{
			Stop: true, Watch: true, Resume: true, After: "1.2", Before: "t", Limit: 3, State: "done", Agent: "a", From: "f", Thread: "th", By: "day",
			Tools: []wire.Tool{{Name: "a", Description: "<b>", InputSchema: json.RawMessage(`{"type":"object"}`), TimeoutMS: 5, Requires: []string{"x"}}},
		},
	}
	frame, err := wire.EncodeCall(want)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, decodeCall(t, frame)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestEveryRequestSurvivesItsFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := coretest.Requests().Draw(t, "request")
		frame, err := wire.EncodeCall(wire.Call{ID: "1", Command: &core.Open{Request: &r}})
		if err != nil {
			t.Fatal(err)
		}
		if strictjson.Check(frame, strictjson.Limits{}) != nil {
			t.Skip("a key with a NUL")
		}
		got := decodeCall(t, frame).Command.(*core.Open).Request
		if d := cmp.Diff(&r, got, coretest.Compare, cmpopts.EquateEmpty()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	})
}

func TestABadFrameIsRefusedWithWhatToChange(t *testing.T) {
	for _, tt := range []struct {
		frame string
		code  core.Code
		id    string
		text  string // in the message
	}{
		{`{`, core.CodeInvalid, "", "JSON"},
		{`[]`, core.CodeInvalid, "", "a frame is an object"},
		{`{}`, core.CodeUnknownKind, "", "send an object with a member call"},
		{`{"Call":{}}`, core.CodeUnknownKind, "", "unknown frame"},
		{`{"call":[]}`, core.CodeInvalid, "", "call: want an object"},
		{`{"call":{"act":"list"}}`, core.CodeInvalid, "", "call: id: missing"},
		{`{"call":{"id":7,"act":"list"}}`, core.CodeInvalid, "", "call: id: want a string"},
		{`{"call":{"id":"1","act":"dance"}}`, core.CodeUnknownKind, "1", `unknown act "dance"`},
		{`{"call":{"id":"1"}}`, core.CodeUnknownKind, "1", `unknown act ""`},
		{`{"call":{"id":"1","act":"cancel","command":{"Task":"t"}}}`, core.CodeInvalid, "1", `did you mean "task"?`},
		{`{"call":{"id":"1","act":"cancel"}}`, core.CodeInvalid, "1", "command: task: missing"},
		{`{"call":{"id":"1","act":"cancel","command":7}}`, core.CodeInvalid, "1", "command: want an object"},
		{`{"call":{"id":"1","act":"open","command":{}}}`, core.CodeInvalid, "1", "command: request: missing"},
		{`{"call":{"id":"1","act":"open","command":{"request":{"to":7}}}}`, core.CodeInvalid, "1", "request.to"},
		{`{"call":{"id":"1","act":"read","command":{"task":"t"}},"with":{"after":1}}`, core.CodeInvalid, "1", "with: after"},
		{`{"call":{"id":"1","act":"list","command":{"what":"cats"}}}`, core.CodeInvalid, "1", "unknown list"},
		{`{"call":{"id":"1","act":"list","command":{}}}`, core.CodeInvalid, "1", "command: what"},
		{`{"call":{"id":"1","id":"2"}}`, core.CodeInvalid, "1", "id"},
		{`{"event":{"kind":"text","body":{}}}`, core.CodeInvalid, "", "event: task: missing"},
		{`{"event":{"task":"t","body":{}}}`, core.CodeInvalid, "", "event: kind: missing"},
		{`{"event":{"task":"t","kind":"text","id":"9"}}`, core.CodeInvalid, "9", "event: body: missing"},
		{`{"event":{"task":"t","kind":"text","body":{"text":7}}}`, core.CodeInvalid, "", "event: body: text: want a string"},
		{`{"event":{"task":"t","kind":"usage","body":{"input":"7"}}}`, core.CodeInvalid, "", "event: body: input: want a whole number"},
		{`{"event":{"task":"t","kind":"done","body":{},"foreign":7}}`, core.CodeInvalid, "", "event: foreign"},
		{`{"event":{"task":"t","kind":"tool_state","body":{"id":"1","state":"odd"}}}`, core.CodeInvalid, "", "unknown tool state"},
		{`{"event":{"task":"t","kind":"text","body":7}}`, core.CodeInvalid, "", "event: body: want an object"},
		{`{"event":{"task":"t","kind":7,"body":{}}}`, core.CodeInvalid, "", "event: kind: want a string"},
		{`{"event":{"task":"t","kind":"later","body":{},"foreign":7}}`, core.CodeInvalid, "", "event: foreign"},
		{`{"event":{"task":"t","kind":"done","body":{},"id":"` + strings.Repeat("x", core.MaxIDBytes+1) + `"}}`, core.CodeInvalid, "", "event: id: has"},
		{`{"answer":{"output":1}}`, core.CodeInvalid, "", "answer: execution: missing"},
		{`{"answer":{"execution":"e","error":7}}`, core.CodeInvalid, "", "answer: error"},
		{`{"progress":{"execution":7}}`, core.CodeInvalid, "", "progress: execution: want a string"},
		{`{"ask":{"id":"1","task":7}}`, core.CodeInvalid, "1", "ask: task: want a string"},
		{`{"tools":{"id":7}}`, core.CodeInvalid, "", "tools: id: want a string"},
		{`{"answer":{"execution":"e"}}`, core.CodeInvalid, "", "answer: output: missing"},
		{`{"progress":{"detail":"half"}}`, core.CodeInvalid, "", "progress: execution: missing"},
		{`{"ask":{"id":"1","question":{}}}`, core.CodeInvalid, "1", "ask: send the task"},
		{`{"ask":{"id":"1","task":"t","execution":"e","question":{}}}`, core.CodeInvalid, "1", "ask: send the task"},
		{`{"ask":{"id":"1","task":"t"}}`, core.CodeInvalid, "1", "ask: question: missing"},
		{`{"ask":{"task":"t","question":{}}}`, core.CodeInvalid, "", "ask: id: missing"},
		{`{"load":{"state":"lazy"}}`, core.CodeInvalid, "", "unknown load"},
		{`{"tools":{}}`, core.CodeInvalid, "", "tools: id: missing"},
		{`{"vitals":{"active":"x"}}`, core.CodeInvalid, "", "vitals: active"},

		{`{"cal":{"id":"1","act":"list"}}`, core.CodeUnknownKind, "", `; "cal": did you mean "call"?`},
		{`{"call":{"id":"1","act":"jion"}}`, core.CodeUnknownKind, "1", `unknown act "jion": did you mean "join"?`},
		{`{"call":{"id":"1","act":"list","comand":{"what":"agents"}}}`, core.CodeInvalid, "1", `unknown key "comand": did you mean "command"?`},
		{`{"call":{"id":"1","act":"read","command":{"task":"t"}},"wit":{"watch":true}}`, core.CodeInvalid, "1", `unknown key "wit" beside it: did you mean "with"?`},
		{`{"call":{"id":"1","act":"read","command":{"task":"t"}},"with":{"wacth":true}}`, core.CodeInvalid, "1", `with: unknown key "wacth": did you mean "watch"?`},
		{`{"call":{"id":"1","act":"join","command":{"card":{"capabilties":["talk"]}}}}`, core.CodeInvalid, "1", `card: unknown key "capabilties": did you mean "capabilities"?`},
		{`{"call":{"id":"1","act":"join","command":{"id":"poet"}}}`, core.CodeInvalid, "1", `unknown key "id"`},
		{`{"call":{"id":"1","act":"open","command":{"reqest":{"to":"a"}}}}`, core.CodeInvalid, "1", `unknown key "reqest": did you mean "request"?`},
		{`{"call":{"id":"1","act":"inject","command":{"task":"t","context":{"contnet":"x"}}}}`, core.CodeInvalid, "1", `context: unknown key "contnet": did you mean "content"?`},
		{`{"answer":{"execution":"e","output":1,"is_eror":true}}`, core.CodeInvalid, "", `unknown key "is_eror"`},
		{`{"load":{"state":"idle"},"id":"1"}`, core.CodeInvalid, "", `unknown key "id" beside it`},
		{`{"vitals":{"sttaus":"ok"}}`, core.CodeInvalid, "", `unknown key "sttaus": did you mean "status"?`},
		{`{"event":{"task":"t","kind":"text","body":{"txet":"hi"}}}`, core.CodeInvalid, "", `body: text: missing; unknown key "txet": did you mean "text"?`},
		{`{"event":{"task":"t","kind":"tool_call","body":{"id":"1"}}}`, core.CodeInvalid, "", "body: name: missing"},
	} {
		_, err := wire.Decode([]byte(tt.frame), limit)
		var r *wire.Refusal
		if !errors.As(err, &r) || r.Fault.Code != tt.code || r.ID != tt.id || !strings.Contains(r.Fault.Message, tt.text) {
			t.Errorf("%s: got %+v, want %s of %q with %q", tt.frame, err, tt.code, tt.id, tt.text)
		}
	}
}

func TestARefusalRepeatsNoNameThatIsTooLong(t *testing.T) {
	long := strings.Repeat("x", core.MaxIDBytes+1)
	for _, frame := range []string{
		`{"call":{"id":"` + long + `","act":"jion"}}`,
		`{"event":{"task":"` + long + `","kind":"text","body":{"txet":"hi"}}}`,
		`{"answer":{"execution":"` + long + `","output":1,"is_eror":true}}`,
	} {
		_, err := wire.Decode([]byte(frame), limit)
		var r *wire.Refusal
		if !errors.As(err, &r) || r.ID != "" || r.Task != "" || r.Execution != "" {
			t.Errorf("%.30s…: got %+v, want a refusal without names", frame, r)
		}
	}
}

func TestWhatTravelsMayHaveMembersThatTheHubDoesNotKnow(t *testing.T) {
	for frame, want := range map[string]map[string]string{
		`{"call":{"id":"1","act":"open","command":{"request":{"to":"a","content":"?","dedline":"x","mood":1}}}}`: {"dedline": "deadline", "mood": ""},
		`{"call":{"id":"1","act":"open","command":{"request":{"to":"a","content":"?"}}}}`:                        nil,
		`{"event":{"id":"1","task":"t","kind":"done","body":{"truncted":true},"tone":"low"}}`:                    {"truncted": "truncated", "tone": ""},
		`{"event":{"id":"1","task":"t","kind":"sparkle","body":{"colour":"red"},"tone":"low"}}`:                  nil,
		`{"event":{"task":"t","kind":"done","body":{"truncted":true}}}`:                                          nil,
	} {
		var got map[string]string
		switch f, err := wire.Decode([]byte(frame), limit); f := f.(type) {
		case wire.Call:
			got = f.Unknown
		case wire.Event:
			got = f.Unknown
		default:
			t.Errorf("%s: got %v, want it read", frame, err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s: unknown members (-want +got):\n%s", frame, d)
		}
	}
	for _, frame := range []string{
		`{"hello":{"native":1,"newer":true}}`,
		`{"answer":{"execution":"e","error":{"code":"internal","message":"m","newer":1}}}`,
		`{"call":{"id":"1","act":"join","command":{"card":{"metadata":{"anything":1}}}}}`,
	} {
		if _, err := wire.Decode([]byte(frame), limit); err != nil {
			t.Errorf("%s: got %v, want it read", frame, err)
		}
	}
}
