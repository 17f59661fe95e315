package wire_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// samples returns the messages of the page and of the extensions.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	return coretest.ReadFiles(t, "../../../schemas/parallax/samples/*.json")
}

// payloads decodes the payload of each type.
var payloads = map[string]func(wire.Message) (any, error){
	wire.TypeRegister:      func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Register](m) },
	wire.TypeTaskResult:    func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskResult](m) },
	wire.TypeTaskError:     func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskError](m) },
	wire.TypeHeartbeat:     func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Heartbeat](m) },
	wire.TypeStatusUpdate:  func(m wire.Message) (any, error) { return wire.ReadPayload[wire.StatusUpdate](m) },
	wire.TypeDisconnect:    func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Disconnect](m) },
	wire.TypeRegistered:    func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Registered](m) },
	wire.TypeTask:          func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Task](m) },
	wire.TypeTaskCancelled: func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskCancelled](m) },
	wire.TypeHeartbeatAck:  func(m wire.Message) (any, error) { return wire.ReadPayload[wire.HeartbeatAck](m) },
	wire.TypeConfigUpdate:  func(m wire.Message) (any, error) { return wire.ReadPayload[wire.ConfigUpdate](m) },
	wire.TypeError:         func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Refusal](m) },
	wire.TypeTaskAccepted:  func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskAccepted](m) },
	wire.TypeTaskProgress:  func(m wire.Message) (any, error) { return wire.ReadPayload[wire.Progress](m) },
	wire.TypeTaskRequest:   func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskRequest](m) },
	wire.TypeTaskCancel:    func(m wire.Message) (any, error) { return wire.ReadPayload[wire.TaskCancel](m) },
}

func TestSamplesSurviveARoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for name, frame := range samples(t) {
		t.Run(name, func(t *testing.T) {
			m, err := wire.Decode(frame)
			if err != nil {
				t.Fatalf("decode: got %v, want no error", err)
			}
			seen[m.Type] = true
			value, err := payloads[m.Type](m)
			if err != nil {
				t.Fatalf("payload: got %v, want no error", err)
			}
			if m.Timestamp != "" {
				if _, err := time.Parse(time.RFC3339Nano, m.Timestamp); err != nil {
					t.Errorf("timestamp: got %v, want ISO 8601", err)
				}
			}
			// Known members are encoded as they were decoded; the others are restored.
			own, err := wire.Encode(m.Type, m.ID, time.Now(), value)
			if err != nil {
				t.Fatalf("encode: %v", err)
			}
			beside, err := strictjson.Marshal(wire.Members{"payload": m.Payload})
			if err != nil {
				t.Fatalf("marshal: %v", err)
			}
			sum, err := wire.Decode(wire.Restore(own, &core.Foreign{Dialect: wire.Dialect, JSON: beside}))
			if err != nil {
				t.Fatalf("decode again: %v", err)
			}
			if diff := cmp.Diff(tree(t, m.Payload), within(tree(t, m.Payload), tree(t, sum.Payload))); diff != "" {
				t.Errorf("payload differs after a round trip (-want +got):\n%s", diff)
			}
		})
	}
	for kind := range payloads {
		if !seen[kind] {
			t.Errorf("samples of %s: got none, want one", kind)
		}
	}
}

// tree decodes JSON into values of any type.
func tree(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// within returns the members of got that want has too.
func within(want, got any) any {
	w, ok1 := want.(map[string]any)
	g, ok2 := got.(map[string]any)
	if !ok1 || !ok2 {
		return got
	}
	kept := map[string]any{}
	for name := range w {
		if v, there := g[name]; there {
			kept[name] = within(w[name], v)
		}
	}
	return kept
}

func TestInvalidFramesAreRefusedWithAReason(t *testing.T) {
	deep := `{"type":"task_result","id":"m1","payload":{"taskId":"t","result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`
	for name, c := range map[string]struct{ frame, id, want string }{
		"nothing":                        {``, "", "nothing to read"},
		"binary":                         {"\x00\xff\xfe\x01", "", "byte"},
		"cut off":                        {`{"type":"heartbeat","id":"m1","payl`, "m1", "end"},
		"no object":                      {`[1,2]`, "", "want an object"},
		"no type":                        {`{"id":"m1","payload":{}}`, "m1", "type: missing; send one of register"},
		"unknown type, text of the page": {`{"type":"foo","id":"m1","payload":{}}`, "m1", "Unknown message type: foo"},
		"a type that is no string":       {`{"type":7,"id":"m1","payload":{}}`, "m1", "type: want a string"},
		"duplicate key":                  {`{"type":"heartbeat","id":"m1","payload":{"status":"a","status":"b"}}`, "m1", `duplicate key "status"`},
		"duplicate id":                   {`{"type":"heartbeat","id":"m1","id":"m2","payload":{}}`, "", `duplicate key "id"`},
		"key in another case":            {`{"Type":"heartbeat","id":"m1","payload":{}}`, "m1", `did you mean "type"`},
		"nested too deeply":              {deep, "m1", "nested"},
		"payload missing":                {`{"type":"task_error","id":"m1"}`, "m1", "payload: missing"},
		"payload of the wrong type":      {`{"type":"register","id":"m1","payload":"x"}`, "m1", "payload: want an object"},
		"member of the wrong type":       {`{"type":"register","id":"m1","payload":{"capabilities":"x"}}`, "m1", "payload.capabilities: want an array of strings"},
		"required member missing":        {`{"type":"task_error","id":"m1","payload":{"taskId":"t"}}`, "m1", "payload.error: missing"},
		"number out of its range":        {`{"type":"status_update","id":"m1","payload":{"maxTasks":-1}}`, "m1", "payload.maxTasks: want at least 0"},
		"a key with a NUL":               {`{"type":"heartbeat","id":"m1","payload":{"a\u0000":1}}`, "m1", "NUL"},
		"garbage after the message":      {`{"type":"heartbeat","id":"m1","payload":{}} x`, "m1", "byte"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := wire.Decode([]byte(c.frame))
			var f *core.Fault
			if !errors.As(err, &f) || !strings.Contains(f.Message, c.want) {
				t.Errorf("error: got %v, want one with %q", err, c.want)
			}
			if m.ID != c.id {
				t.Errorf("id: got %q, want %q", m.ID, c.id)
			}
			if m.Payload != nil {
				t.Errorf("payload: got %s, want none", m.Payload)
			}
		})
	}
}

func TestCountsAreReadInEveryForm(t *testing.T) {
	for text, want := range map[string]wire.Count{"30000": 30000, "30000.0": 30000, "3e4": 30000, "1500.5": 1501, "null": 0, "1e300": 1 << 53} {
		var got wire.Count
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", text, got, err, want)
		}
	}
	var c wire.Count
	if err := json.Unmarshal([]byte(`"30"`), &c); err == nil {
		t.Errorf("a string: got %d, want an error", c)
	}
}

func TestTextIsNotEscapedForHTML(t *testing.T) {
	frame, err := wire.Encode(wire.TypeTaskProgress, "m1", time.Unix(0, 0), wire.Progress{Item: wire.Item{Text: new("a < b && c > d")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"type":"task_progress","id":"m1","timestamp":"1970-01-01T00:00:00.000Z","payload":{"text":"a < b && c > d"}}`; string(frame) != want {
		t.Errorf("got  %s\nwant %s", frame, want)
	}
}

func TestEveryFaultCodeSurvivesARoundTrip(t *testing.T) {
	for _, code := range core.Codes() {
		f := core.NewFault(code, "because")
		e := wire.TaskErrorOf(wire.TaskRef{TaskID: "t"}, f, nil)
		if e.Error.Code == "" {
			t.Errorf("%s: got no code of the dialect, want one", code)
		}
		if got := e.Fault(); !cmp.Equal(got, f, cmp.AllowUnexported(core.Fault{})) {
			t.Errorf("%s: got %+v back, want %+v", code, got, f)
		}
	}
}

func TestAnAgentsOwnCodeReachesOnlyItsDialect(t *testing.T) {
	for code, want := range map[string]core.Code{"PROCESSING_ERROR": core.CodeInternal, "REJECTED": core.CodeUnsupported, "OUT_OF_CHEESE": core.CodeInternal, "TIMEOUT": core.CodeTimeout} {
		in := wire.TaskError{Error: wire.ErrorDetail{code, "no"}, Retryable: new(true)}
		f := in.Fault()
		if f.Code != want || !f.Retryable || f.Message != "no" {
			t.Errorf("%s: got %+v, want %s, retryable", code, f, want)
		}
		foreign := wire.WithCode(nil, core.Failed{Fault: f})
		if got := wire.TaskErrorOf(wire.TaskRef{}, f, foreign).Error.Code; got != code {
			t.Errorf("%s: got %s back, want it unchanged", code, got)
		}
	}
	stranger := &core.Fault{Code: core.CodeInternal, Message: "no", PeerCode: "some_other_dialect"}
	if got := wire.CodeOf(stranger); got != "INTERNAL_ERROR" {
		t.Errorf("a code of another dialect: got %s, want INTERNAL_ERROR", got)
	}
}
