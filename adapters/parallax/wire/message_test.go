package wire

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

// samples are the messages of the protocol's page, and those of the extensions.
func samples(t testing.TB) map[string][]byte {
	t.Helper()
	return coretest.ReadFiles(t, "../../../schemas/parallax/samples/*.json")
}

// payloads reads a payload of each type into its struct.
var payloads = map[string]func(Message) (any, error){
	TypeRegister:      func(m Message) (any, error) { return ReadPayload[Register](m) },
	TypeTaskResult:    func(m Message) (any, error) { return ReadPayload[TaskResult](m) },
	TypeTaskError:     func(m Message) (any, error) { return ReadPayload[TaskError](m) },
	TypeHeartbeat:     func(m Message) (any, error) { return ReadPayload[Heartbeat](m) },
	TypeStatusUpdate:  func(m Message) (any, error) { return ReadPayload[StatusUpdate](m) },
	TypeDisconnect:    func(m Message) (any, error) { return ReadPayload[Disconnect](m) },
	TypeRegistered:    func(m Message) (any, error) { return ReadPayload[Registered](m) },
	TypeTask:          func(m Message) (any, error) { return ReadPayload[Task](m) },
	TypeTaskCancelled: func(m Message) (any, error) { return ReadPayload[TaskCancelled](m) },
	TypeHeartbeatAck:  func(m Message) (any, error) { return ReadPayload[HeartbeatAck](m) },
	TypeConfigUpdate:  func(m Message) (any, error) { return ReadPayload[ConfigUpdate](m) },
	TypeError:         func(m Message) (any, error) { return ReadPayload[Refusal](m) },
	TypeTaskAccepted:  func(m Message) (any, error) { return ReadPayload[TaskAccepted](m) },
	TypeTaskProgress:  func(m Message) (any, error) { return ReadPayload[Progress](m) },
	TypeTaskRequest:   func(m Message) (any, error) { return ReadPayload[TaskRequest](m) },
	TypeTaskCancel:    func(m Message) (any, error) { return ReadPayload[TaskCancel](m) },
}

func TestEverySampleOfThePagePassesThroughTheCodec(t *testing.T) {
	seen := map[string]bool{}
	for name, frame := range samples(t) {
		t.Run(name, func(t *testing.T) {
			m, err := Decode(frame)
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
			// What the structs know of a sample is written as it was read; what
			// they do not know must be what the session keeps beside them.
			own, err := Marshal(value)
			if err != nil {
				t.Fatalf("marshal: %v", err)
			}
			for _, known := range []shape{ResultShape, ErrorShape, TaskShape, progressShape} {
				_ = m.Foreign(known.Strip(m.Content()))
			}
			sum := overlay(own, m.Payload)
			if diff := cmp.Diff(tree(t, m.Payload), within(tree(t, m.Payload), tree(t, sum))); diff != "" {
				t.Errorf("payload otherwise than it was read (-want +got):\n%s", diff)
			}
		})
	}
	for kind := range payloads {
		if !seen[kind] {
			t.Errorf("samples of %s: got none, want one", kind)
		}
	}
}

// tree is JSON as Go values.
func tree(t testing.TB, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

// within keeps of got what want has members for.
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

func TestABadFrameIsRefusedWithWhatToChange(t *testing.T) {
	deep := `{"type":"task_result","id":"m1","payload":{"taskId":"t","result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}}`
	for name, c := range map[string]struct{ frame, id, want string }{
		"nothing":                    {``, "", "nothing to read"},
		"binary":                     {"\x00\xff\xfe\x01", "", "byte"},
		"cut off":                    {`{"type":"heartbeat","id":"m1","payl`, "m1", "end"},
		"no object":                  {`[1,2]`, "", "want an object"},
		"no type":                    {`{"id":"m1","payload":{}}`, "m1", "type: missing; send one of register"},
		"unknown type, as the page":  {`{"type":"foo","id":"m1","payload":{}}`, "m1", "Unknown message type: foo"},
		"a type of another type":     {`{"type":7,"id":"m1","payload":{}}`, "m1", "type: want a string"},
		"duplicate key":              {`{"type":"heartbeat","id":"m1","payload":{"status":"a","status":"b"}}`, "m1", `duplicate key "status"`},
		"duplicate id":               {`{"type":"heartbeat","id":"m1","id":"m2","payload":{}}`, "", `duplicate key "id"`},
		"key in another case":        {`{"Type":"heartbeat","id":"m1","payload":{}}`, "m1", `did you mean "type"`},
		"nested too deeply":          {deep, "m1", "nested"},
		"payload missing":            {`{"type":"task_error","id":"m1"}`, "m1", "payload: missing"},
		"payload of the wrong type":  {`{"type":"register","id":"m1","payload":"x"}`, "m1", "payload: want an object"},
		"member of the wrong type":   {`{"type":"register","id":"m1","payload":{"capabilities":"x"}}`, "m1", "payload.capabilities: want an array of strings"},
		"required member missing":    {`{"type":"task_error","id":"m1","payload":{"taskId":"t"}}`, "m1", "payload.error: missing"},
		"number out of its range":    {`{"type":"status_update","id":"m1","payload":{"maxTasks":-1}}`, "m1", "payload.maxTasks: want at least 0"},
		"a key with a NUL":           {`{"type":"heartbeat","id":"m1","payload":{"a\u0000":1}}`, "m1", "NUL"},
		"garbage behind the message": {`{"type":"heartbeat","id":"m1","payload":{}} x`, "m1", "byte"},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := Decode([]byte(c.frame))
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

func TestWholeNumbersAreReadHoweverTheyAreWritten(t *testing.T) {
	for text, want := range map[string]Count{"30000": 30000, "30000.0": 30000, "3e4": 30000, "1500.5": 1501, "null": 0, "1e300": 1 << 53} {
		var got Count
		if err := json.Unmarshal([]byte(text), &got); err != nil || got != want {
			t.Errorf("%s: got %d and %v, want %d", text, got, err, want)
		}
	}
	var c Count
	if err := json.Unmarshal([]byte(`"30"`), &c); err == nil {
		t.Errorf("a string: got %d, want an error", c)
	}
}

func TestTextIsNotEscapedForHTML(t *testing.T) {
	frame, err := Encode(TypeTaskProgress, "m1", time.Unix(0, 0), Progress{Item: Item{Text: new("a < b && c > d")}})
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"type":"task_progress","id":"m1","timestamp":"1970-01-01T00:00:00.000Z","payload":{"text":"a < b && c > d"}}`; string(frame) != want {
		t.Errorf("got  %s\nwant %s", frame, want)
	}
}

func TestEveryCodeOfAFaultTravelsThereAndBack(t *testing.T) {
	for _, code := range core.Codes() {
		f := core.NewFault(code, "because")
		e := TaskErrorOf(About{TaskID: "t"}, f, nil)
		if e.Error.Code == "" {
			t.Errorf("%s: got no code of the dialect, want one", code)
		}
		if got := e.Fault(); !cmp.Equal(got, f, cmp.AllowUnexported(core.Fault{})) {
			t.Errorf("%s: got %+v back, want %+v", code, got, f)
		}
	}
}

func TestACodeOfTheAgentsOwnIsSeenAgainByItsDialectAlone(t *testing.T) {
	for code, want := range map[string]core.Code{"PROCESSING_ERROR": core.CodeInternal, "REJECTED": core.CodeUnsupported, "OUT_OF_CHEESE": core.CodeInternal, "TIMEOUT": core.CodeTimeout} {
		in := TaskError{Error: ErrorDetail{code, "no"}, Retryable: new(true)}
		f := in.Fault()
		if f.Code != want || !f.Retryable || f.Message != "no" {
			t.Errorf("%s: got %+v, want %s, retryable", code, f, want)
		}
		foreign := WithCode(nil, core.Failed{Fault: f})
		if got := TaskErrorOf(About{}, f, foreign).Error.Code; got != code {
			t.Errorf("%s: got %s back, want it unchanged", code, got)
		}
	}
	stranger := &core.Fault{Code: core.CodeInternal, Message: "no", Peer: "some_other_dialect"}
	if got := errorOf(stranger, nil).Code; got != "INTERNAL_ERROR" {
		t.Errorf("a code of another dialect: got %s, want INTERNAL_ERROR", got)
	}
}
