package a2a_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// items are stream items as the JavaScript SDK sends them, and with everything that they may
// have.
var items = []string{
	`{"task":{"id":"2abb","contextId":"5add","status":{"state":"TASK_STATE_SUBMITTED","timestamp":"2026-11-22T03:07:17.640Z"},"history":[{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/plain"}]}]}}`,
	`{"statusUpdate":{"taskId":"2abb","contextId":"5add","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-11-22T03:07:17.640Z"}}}`,
	`{"artifactUpdate":{"taskId":"2abb","contextId":"5add","artifact":{"artifactId":"a1","parts":[{"text":"LO \"<&>\" äß世\n"}]},"append":true,"lastChunk":true}}`,
	`{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a1","name":"n","description":"d","parts":[{"raw":"aGk=","mediaType":"text/plain","filename":"a.txt"},{"url":"https://example.com/x"},{"data":null},{"data":{"a":[1,2]},"metadata":{"m":1},"vendor":true}],"metadata":{"x":1},"extensions":["urn:x"],"more":[]},"metadata":{"y":{}},"later":null}}`,
	`{"message":{"messageId":"m2","contextId":"c","role":"ROLE_AGENT","parts":[{"text":""}],"extensions":["urn:x"],"referenceTaskIds":["t0"],"vendor":{"a":1}}}`,
	`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_OF_TOMORROW","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"?"}]},"vendor":1},"metadata":{"urn:dragoman:a2a:cursor:1":"1.3"}}}`,
	`{"kindOfTomorrow":{"a":1}}`,
}

func TestAnItemIsWrittenAsItWasRead(t *testing.T) {
	for _, text := range items {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		item, err := new(wire.ItemReader).Read(v)
		if err != nil {
			t.Errorf("%s: got %v, want an item", text, err)
			continue
		}
		if diff := cmp.Diff(anyOf(t, []byte(text)), anyOf(t, item.AppendJSON(nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func anyOf(t testing.TB, text []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestAWrongMemberIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "want exactly one of task, message, statusUpdate and artifactUpdate",
		`{"task":{"id":"a","status":{"state":"TASK_STATE_WORKING"}},"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""}]}}`: "want exactly one of",
		`{"message":{"role":"ROLE_USER","parts":[{"text":""}]}}`:                                                                           "message.messageId: missing",
		`{"message":{"messageId":"m","role":"user","parts":[{"text":""}]}}`:                                                                `message.role: want ROLE_USER or ROLE_AGENT, got "user"`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`:                                                                      "message.parts: missing",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":""},{"kind":"text"}]}}`:                                           "message.parts[1]: a part without content",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","url":"b"}]}}`:                                                "message.parts[0].url: a part with two contents",
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"***"}]}}`:                                                         "message.parts[0].raw: want base64 text",
		`{"message":{"MessageId":"m"}}`:                                                                                                    `message: unknown key "MessageId": write it as "messageId"`,
		`{"artifactUpdate":{"taskId":"t","artifact":{"parts":[]}}}`:                                                                        "artifactUpdate.artifact.artifactId: missing",
		`{"artifactUpdate":{"artifact":{"artifactId":"a","parts":[]}}}`:                                                                    "artifactUpdate.taskId: missing",
		`{"artifactUpdate":{"taskId":"t","append":1}}`:                                                                                     "artifactUpdate.append: want true or false, got a number",
		`{"statusUpdate":{"taskId":"t","status":{"timestamp":"yesterday"}}}`:                                                               `statusUpdate.status.timestamp: want a time such as`,
		`{"statusUpdate":{"taskId":"t"}}`:                                                                                                  "statusUpdate.status.state: missing",
		`{"task":{"id":"t","status":{"state":"TASK_STATE_WORKING"},"artifacts":[{"artifactId":"a","parts":[{"metadata":{}}]}]}}`:           "task.artifacts[0].parts[0]: a part without content",
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := new(wire.ItemReader).Read(v); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func TestARequestSurvivesARoundTripThroughTheNeutralOne(t *testing.T) {
	for _, text := range []string{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"configuration":{}}`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"},{"data":{"a":1}},{"raw":"aGk=","filename":"a.txt"}],"metadata":{"k":1}},"configuration":{}}`,
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"aGk="},{"text":"a","metadata":{"x":1}},{"text":"b"},{"url":"https://example.com"}],"extensions":["urn:x"],"vendor":1},"configuration":{"acceptedOutputModes":["text/plain"]},"metadata":{"r":2},"later":{}}`,
	} {
		v, err := wire.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		r, err := wire.ReadSendRequest(v)
		if err != nil {
			t.Fatal(err)
		}
		back := wire.SendRequestOf(wire.RequestOf(r))
		got, err := strictjson.Marshal(back)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(anyOf(t, []byte(text)), anyOf(t, got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestFilesOfEarlierTurnsFollowThePartsOfTheRequester(t *testing.T) {
	for name, part := range map[string]wire.Part{
		"kept as it came": {Kind: wire.PartText, Text: "see", MediaType: "text/markdown"},
		"neutral":         wire.TextPart("see"),
	} {
		q := wire.RequestOf(wire.SendRequest{Message: wire.Message{ID: "m", Role: wire.RoleUser, Parts: []wire.Part{part, wire.FilePart("own.txt", "text/plain", []byte("own"))}}})
		q.Attachments, q.Handed = append(q.Attachments, core.File{Name: "plan.md", Data: []byte("plan")}), []core.TaskID{"1"}
		var got []string
		for _, p := range wire.SendRequestOf(q).Message.Parts {
			got = append(got, p.Text+p.Filename)
		}
		if want := []string{"see", "own.txt", "plan.md"}; !slices.Equal(got, want) {
			t.Errorf("%s: got the parts %q, want %q", name, got, want)
		}
	}
}

func TestTheNeutralRequestHasAllPartsOfAMessage(t *testing.T) {
	r := wire.SendRequest{Message: wire.Message{ID: "m", Role: wire.RoleUser, Metadata: json.RawMessage(`{"k":1}`), Parts: []wire.Part{
		wire.TextPart("see"), {Kind: wire.PartURL, Text: "https://example.com/a"}, wire.DataPart(json.RawMessage(`1`)), wire.DataPart(json.RawMessage(`null`)),
		wire.FilePart("", "image/png", []byte("x")),
	}}}
	got := wire.RequestOf(r)
	if got.Content != "see\nhttps://example.com/a" || string(got.Data) != "[1,null]" || string(got.Context) != `{"k":1}` {
		t.Errorf("got %q, data %s, context %s; want both texts, both data and the metadata", got.Content, got.Data, got.Context)
	}
	if len(got.Attachments) != 1 || got.Attachments[0].Name != "file-5.png" {
		t.Errorf("got %v, want the file with a name", got.Attachments)
	}
}

func TestErrorsHaveTheCodesOfBothBindings(t *testing.T) {
	for reason, want := range map[string][2]int{
		wire.ReasonTaskNotFound: {-32001, 404}, wire.ReasonTaskNotCancelable: {-32002, 400}, wire.ReasonPushNotSupported: {-32003, 400},
		wire.ReasonUnsupportedOperation: {-32004, 400}, wire.ReasonContentType: {-32005, 400}, wire.ReasonInvalidAgentResponse: {-32006, 500},
		wire.ReasonNoExtendedCard: {-32007, 400}, wire.ReasonExtensionRequired: {-32008, 400}, wire.ReasonVersionNotSupported: {-32009, 400},
	} {
		if e := wire.NewError(reason, "m"); e.Code != want[0] || e.Status != want[1] || e.GRPC == "" {
			t.Errorf("%s: got %d and %d, want %v", reason, e.Code, e.Status, want)
		}
	}
}

func TestEveryFaultComesBackFromBothBindings(t *testing.T) {
	for _, code := range core.Codes() {
		want := core.NewFault(code, "what to do")
		sent := wire.ErrorOf(want)
		details, err := wire.Parse(sent.Details())
		if err != nil {
			t.Fatal(err)
		}
		if code == core.CodeUnknownKind {
			want.Code = core.CodeUnsupported // the protocol has one word for both
		}
		for binding, e := range map[string]*wire.Error{
			"JSON-RPC":  wire.ReadError(200, sent.Code, sent.Message, details),
			"HTTP+JSON": wire.ReadErrorBody(sent.Status, sent.Body()),
		} {
			if got := e.Fault(); got.Code != want.Code || got.Message != want.Message || got.Retryable != want.Retryable || got.PeerCode != "" {
				t.Errorf("%s over %s: got %+v, want %+v", code, binding, got, want)
			}
		}
	}
}

func TestAnErrorOfAWrongMemberNamesItsField(t *testing.T) {
	v, err := wire.Parse([]byte(`{"id":7}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = wire.Read[wire.TaskRequest](v)
	got := wire.ErrorOf(err)
	if got.Code != -32602 || len(got.Violations) != 1 || got.Violations[0].Field != "id" {
		t.Errorf("got %+v, want invalid params of id", got)
	}
	const want = `[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"INVALID_PARAMS","domain":"a2a-protocol.org"},{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"id","description":"want a string, got a number"}]}]`
	if string(got.Details()) != want {
		t.Errorf("got %s, want %s", got.Details(), want)
	}
}

func TestAnErrorWithoutDetailsIsRead(t *testing.T) {
	for _, tt := range []struct {
		err  *wire.Error
		want core.Code
	}{
		{wire.ReadErrorBody(401, []byte("no")), core.CodeUnauthenticated},
		{wire.ReadErrorBody(403, nil), core.CodeNotAuthorized},
		{wire.ReadErrorBody(503, []byte(`{"detail":"busy"}`)), core.CodeUnreachable},
		{wire.ReadErrorBody(500, []byte(`[]`)), core.CodeInternal},
		{wire.ReadError(200, -32001, "gone", strictjson.Value{}), core.CodeUnknownTask},
		{wire.ReadError(200, -32009, "old", strictjson.Value{}), core.CodeUnsupported},
		{wire.ReadError(200, -31999, "own", strictjson.Value{}), core.CodeInternal},
	} {
		if got := tt.err.Fault(); got.Code != tt.want || got.Message == "" {
			t.Errorf("%+v: got %v, want %s", tt.err, got, tt.want)
		}
	}
}

func TestACardThatLacksAFieldSaysWhich(t *testing.T) {
	const card = `{"name":"n","description":"","version":"1","supportedInterfaces":[{"url":"http://h/a","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{"streaming":true,"extensions":[{"uri":"urn:x"}]},"defaultInputModes":[],"defaultOutputModes":[],"skills":[{"id":"s","name":"s","description":"","tags":[]}],"vendor":1}`
	c, err := wire.ReadCard([]byte(card))
	if err != nil || !c.Capabilities.Streaming || !c.Capabilities.Has("urn:x") || c.Capabilities.Has("urn:y") || len(c.Skills) != 1 {
		t.Errorf("got %+v and %v, want the card", c, err)
	}
	for old, want := range map[string]string{
		`"name":"n",`:                    "name: missing",
		`"protocolBinding":"JSONRPC",`:   "supportedInterfaces[0].protocolBinding: missing",
		`"url":"http://h/a",`:            "supportedInterfaces[0].url: missing",
		`"skills":[{"id":"s",`:           "skills",
		`,"protocolVersion":"1.0"`:       "supportedInterfaces[0].protocolVersion: missing",
		`"capabilities":{"streaming":tr`: "not JSON",
	} {
		text := strings.Replace(card, old, "", 1)
		if old == `"skills":[{"id":"s",` {
			text = strings.Replace(card, old, `"skills":[{"id":7,`, 1)
		}
		if _, err := wire.ReadCard([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("without %s: got %v, want %q", old, err, want)
		}
	}
}

func TestACursorIsReadFromTheMetadata(t *testing.T) {
	r := wire.TaskRequest{ID: "t", Metadata: json.RawMessage(`{"urn:dragoman:a2a:cursor:1":"1.3"}`)}
	if got, err := r.Cursor(); got != "1.3" || err != nil {
		t.Errorf("got %q and %v, want 1.3", got, err)
	}
	r.Metadata = json.RawMessage(`{"urn:dragoman:a2a:cursor:1":3}`)
	var at *strictjson.Error
	if _, err := r.Cursor(); !errors.As(err, &at) || at.Problem != "want a string, got a number" {
		t.Errorf("got %v, want an error that says what a cursor is", err)
	}
}

func TestWhatAPeerSaidBesideAnEventComesBack(t *testing.T) {
	f := wire.Beside(wire.StreamResponse{ArtifactUpdate: &wire.ArtifactUpdate{Artifact: wire.Artifact{ID: "a", Parts: []wire.Part{{MediaType: "text/x", Unknown: json.RawMessage(`{"v":1}`)}}}, LastChunk: true}})
	got, said := wire.BesideOf(f)
	if !said || got.ArtifactUpdate == nil || !got.ArtifactUpdate.LastChunk || got.ArtifactUpdate.Artifact.ID != "a" || string(got.ArtifactUpdate.Artifact.Parts[0].Unknown) != `{"v":1}` {
		t.Errorf("got %+v and %t, want what was said", got.ArtifactUpdate, said)
	}
	for _, f := range []*core.Foreign{nil, {Dialect: "acp", JSON: f.JSON}, {Dialect: wire.Dialect, JSON: json.RawMessage(`{"task":1}`)}} {
		if _, said := wire.BesideOf(f); said {
			t.Errorf("%v: got something said, want nothing", f)
		}
	}
}

func TestATimestampHasMilliseconds(t *testing.T) {
	b, err := strictjson.Marshal(wire.Task{ID: "t", Status: wire.Status{State: wire.StateWorking, At: time.Date(2026, 11, 22, 4, 7, 17, 640123456, time.FixedZone("", 3600))}})
	if want := `{"id":"t","status":{"state":"TASK_STATE_WORKING","timestamp":"2026-11-22T03:07:17.640Z"}}`; string(b) != want || err != nil {
		t.Errorf("got %s and %v, want %s", b, err, want)
	}
}
