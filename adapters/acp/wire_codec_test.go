package acp_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// samples are the samples of the draft, with their payloads.
var samples = []struct {
	kind wire.Kind
	json string
	into any
	want any
}{
	{wire.KindPing, `{"kind":"ping"}`, &struct{}{}, &struct{}{}},
	{
		wire.KindPong, `{"kind":"pong","ref":"original-ping-id","payload":{"status":"busy","uptime_secs":3600,"active_tasks":2,"agent_name":"Kit"}}`,
		&wire.Pong{}, &wire.Pong{Status: "busy", UptimeSecs: 3600, ActiveTasks: 2, AgentName: "Kit"},
	},
	{
		wire.KindQuery, `{"kind":"query","payload":{"question":"What are the kids' swim schedules this week?","domain":"family.calendar","max_tokens":200,"deadline_ms":30000}}`,
		&wire.Query{}, &wire.Query{Question: json.RawMessage(`"What are the kids' swim schedules this week?"`), Domain: "family.calendar", MaxTokens: 200, DeadlineMS: 30000},
	},
	{
		wire.KindResponse, `{"kind":"response","ref":"original-query-id","payload":{"data":{"days":["Mon"]},"summary":"Three swim practices: Mon/Wed/Fri 4-5pm at the local pool","tokens_used":47,"truncated":false}}`,
		&wire.Response{}, &wire.Response{Data: json.RawMessage(`{"days":["Mon"]}`), Summary: "Three swim practices: Mon/Wed/Fri 4-5pm at the local pool", TokensUsed: 47},
	},
	{
		wire.KindDelegate, `{"kind":"delegate","payload":{"task":"Send the family contact a message","context":{"reason":"Meeting ran over","dinner_time":"7:00 PM","grace_handle":"family-contact@example.com"},"priority":"urgent","report_back":true,"deadline_ms":60000}}`,
		&wire.Delegate{}, &wire.Delegate{
			Task: "Send the family contact a message", Context: json.RawMessage(`{"reason":"Meeting ran over","dinner_time":"7:00 PM","grace_handle":"family-contact@example.com"}`),
			Priority: "urgent", ReportBack: new(true), DeadlineMS: 60000,
		},
	},
	{wire.KindAck, `{"kind":"ack","ref":"original-delegate-id","payload":{"accepted":true,"estimated_ms":5000}}`, &wire.Ack{}, &wire.Ack{Accepted: true, EstimatedMS: 5000}},
	{
		wire.KindResult, `{"kind":"result","ref":"original-delegate-id","payload":{"status":"completed","outcome":"Message sent to the family contact. She replied 'ok no worries'","data":{},"error":null}}`,
		&wire.Result{}, &wire.Result{Status: "completed", Outcome: "Message sent to the family contact. She replied 'ok no worries'", Data: json.RawMessage(`{}`)},
	},
	{
		wire.KindNotify, `{"kind":"notify","payload":{"topic":"hans.location","data":{"location":"heading to gym","eta_back":"2h"},"importance":"low"}}`,
		&wire.Notify{}, &wire.Notify{Topic: "hans.location", Data: json.RawMessage(`{"location":"heading to gym","eta_back":"2h"}`), Importance: "low"},
	},
	{wire.KindCancel, `{"kind":"cancel","ref":"original-delegate-id","payload":{"reason":"Plans changed, no longer needed"}}`, &wire.Cancel{}, &wire.Cancel{Reason: "Plans changed, no longer needed"}},
	{wire.KindDiscover, `{"kind":"discover"}`, &wire.Discover{}, &wire.Discover{}},
	{
		wire.KindCapabilities, `{"kind":"capabilities","ref":"original-discover-id","payload":{"agent_name":"Family Assistant","domains":["family","calendar","groceries","school","activities"],"channels":["imessage","apple-reminders"],"tools":["web_search","gog","bluebubbles"],"max_concurrent_tasks":4,"model":"gemini-3-pro"}}`,
		&wire.Capabilities{}, &wire.Capabilities{
			AgentName: "Family Assistant", Domains: []string{"family", "calendar", "groceries", "school", "activities"},
			Channels: []string{"imessage", "apple-reminders"}, Tools: []string{"web_search", "gog", "bluebubbles"},
			MaxConcurrentTasks: new(int64(4)), Model: "gemini-3-pro",
		},
	},
	{
		wire.KindError, `{"kind":"error","ref":"original-message-id","payload":{"code":"not_authorized","message":"I don't have access to the user's work calendar","retryable":false}}`,
		&wire.Error{}, &wire.Error{Code: wire.CodeNotAuthorized, Message: "I don't have access to the user's work calendar"},
	},
	{
		wire.KindHello, `{"kind":"hello","payload":{"protocol_versions":[1],"agent_name":"Kit","features":["delegate","ack"]}}`,
		&wire.Hello{}, &wire.Hello{ProtocolVersions: []int64{1}, AgentName: "Kit", Features: []string{"delegate", "ack"}},
	},
}

// envelopeOf puts a sample, which shows kind, ref and payload only, into the
// envelope of the draft.
func envelopeOf(sample string) []byte {
	return []byte(`{"v":1,"id":"6f1c9fd4-95c1-4b02-8d7c-fd8a2f1c2a3b","from":"0a1b2c3d4e5f60718293a4b5c6d7e8f9","to":"ffeeddccbbaa99887766554433221100","ts":1771108000000,` + sample[1:])
}

func TestEverySampleOfTheDraftIsReadAndWrittenAgain(t *testing.T) {
	for _, s := range samples {
		t.Run(string(s.kind), func(t *testing.T) {
			e, err := wire.Decode(envelopeOf(s.json), wire.DefaultMaxEnvelopeBytes)
			if err != nil {
				t.Fatalf("Decode: got %v, want no error", err)
			}
			if err := e.Check(); err != nil {
				t.Fatalf("Check: got %v, want no error", err)
			}
			if e.Kind != s.kind || e.TS != 1771108000000 || e.From != "0a1b2c3d4e5f60718293a4b5c6d7e8f9" || e.To != "ffeeddccbbaa99887766554433221100" {
				t.Errorf("envelope: got %+v, want that of the sample", e)
			}
			if err := e.Read(s.into); err != nil {
				t.Fatalf("Read: got %v, want no error", err)
			}
			if diff := cmp.Diff(s.want, s.into); diff != "" {
				t.Errorf("payload (-want +got):\n%s", diff)
			}
			again := e
			again.Payload = wire.Marshal(s.into)
			back, err := wire.Decode(again.Encode(), wire.DefaultMaxEnvelopeBytes)
			if err != nil {
				t.Fatalf("Decode of what was encoded: got %v, want no error", err)
			}
			if err := back.Check(); err != nil {
				t.Errorf("Check of what was encoded: got %v, want no error", err)
			}
			back.Raw, again.Raw = nil, nil
			if diff := cmp.Diff(again, back, cmpopts.IgnoreUnexported(wire.Envelope{})); diff != "" {
				t.Errorf("envelope written and read (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheEnvelopeIsReadAsTheDraftAndItsSuccessorsWriteIt(t *testing.T) {
	for name, c := range map[string]struct {
		json string
		want wire.Envelope
	}{
		"ref null":       {`{"v":1,"id":"1","from":"a","to":"b","ts":5,"kind":"ping","ref":null,"payload":{}}`, wire.Envelope{ID: "1", From: "a", To: "b", TS: 5, Kind: "ping", Payload: json.RawMessage(`{}`)}},
		"ref absent":     {`{"id":"1","kind":"ping"}`, wire.Envelope{ID: "1", Kind: "ping"}},
		"ref a text":     {`{"id":"1","kind":"pong","ref":"x"}`, wire.Envelope{ID: "1", Kind: "pong", Ref: "x"}},
		"reply_to":       {`{"id":"1","kind":"pong","reply_to":"x"}`, wire.Envelope{ID: "1", Kind: "pong", Ref: "x"}},
		"payload null":   {`{"id":"1","kind":"ping","payload":null}`, wire.Envelope{ID: "1", Kind: "ping"}},
		"unknown fields": {`{"id":"1","kind":"ping","x-trace":{"a":[1]},"payload":{"y":1}}`, wire.Envelope{ID: "1", Kind: "ping", Payload: json.RawMessage(`{"y":1}`)}},
		"unknown kind":   {`{"id":"1","kind":"negotiate","payload":{"topic":"a.>"}}`, wire.Envelope{ID: "1", Kind: "negotiate", Payload: json.RawMessage(`{"topic":"a.>"}`)}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := wire.Decode([]byte(c.json), 1000)
			if err != nil {
				t.Fatalf("got %v, want no error", err)
			}
			if err := got.Check(); err != nil {
				t.Fatalf("Check: got %v, want no error", err)
			}
			c.want.Raw = []byte(c.json)
			if diff := cmp.Diff(c.want, got, cmpopts.IgnoreUnexported(wire.Envelope{})); diff != "" {
				t.Errorf("envelope (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheErrorOfABadEnvelopeSaysWhatToChange(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for name, c := range map[string]struct {
		json string
		code wire.Code
		id   string
		want string
	}{
		"not JSON":          {`hello`, wire.CodeInvalidEnvelope, "", "byte 0"},
		"binary":            {"\x00\xff\xfe", wire.CodeInvalidEnvelope, "", "byte"},
		"cut off":           {`{"id":"7","kind":"ping"`, wire.CodeInvalidEnvelope, "7", ""},
		"two at once":       {`{"id":"7","kind":"ping"}{"id":"8","kind":"ping"}`, wire.CodeInvalidEnvelope, "7", ""},
		"an array":          {`[1,2]`, wire.CodeInvalidEnvelope, "", "object"},
		"null":              {`null`, wire.CodeInvalidEnvelope, "", "object"},
		"no id":             {`{"kind":"ping"}`, wire.CodeInvalidEnvelope, "", "id"},
		"no kind":           {`{"id":"7"}`, wire.CodeInvalidEnvelope, "7", "kind"},
		"id a number":       {`{"id":7,"kind":"ping"}`, wire.CodeInvalidEnvelope, "", "id"},
		"kind a number":     {`{"id":"7","kind":1}`, wire.CodeInvalidEnvelope, "7", "kind"},
		"ref a number":      {`{"id":"7","kind":"pong","ref":3}`, wire.CodeInvalidEnvelope, "7", "ref"},
		"payload a text":    {`{"id":"7","kind":"query","payload":"hi"}`, wire.CodeInvalidEnvelope, "7", "payload"},
		"key twice":         {`{"id":"7","kind":"ping","kind":"query"}`, wire.CodeInvalidEnvelope, "7", "kind"},
		"key in other case": {`{"id":"7","Kind":"ping"}`, wire.CodeInvalidEnvelope, "7", "kind"},
		"NUL in a key":      {`{"id":"7","kind":"ping","a\u0000":1}`, wire.CodeInvalidEnvelope, "7", "NUL"},
		"too deep":          {`{"id":"7","kind":"ping","payload":{"a":` + deep + `}}`, wire.CodeInvalidEnvelope, "7", "deep"},
		"version 2":         {`{"v":2,"id":"7","kind":"ping"}`, wire.CodeIncompatibleVersion, "7", `"v":1`},
		"version a text":    {`{"v":"1","id":"7","kind":"ping"}`, wire.CodeInvalidEnvelope, "7", "v"},
		"too large":         {`{"id":"7","kind":"ping","payload":{"a":"` + strings.Repeat("x", 1000) + `"}}`, wire.CodeTooLarge, "7", "limit"},
		"id too long":       {`{"id":"` + strings.Repeat("x", 600) + `","kind":"ping"}`, wire.CodeInvalidEnvelope, "", "at most 512"},
		"no question":       {`{"id":"7","kind":"query","payload":{}}`, wire.CodeInvalidEnvelope, "7", "question"},
		"question a number": {`{"id":"7","kind":"query","payload":{"question":5}}`, wire.CodeInvalidEnvelope, "7", "question"},
		"bad priority":      {`{"id":"7","kind":"delegate","payload":{"task":"x","priority":"asap"}}`, wire.CodeInvalidEnvelope, "7", "priority"},
		"bad status":        {`{"id":"7","kind":"result","ref":"x","payload":{"status":"ok","outcome":""}}`, wire.CodeInvalidEnvelope, "7", "status"},
		"answer without ref": {
			`{"id":"7","kind":"response","payload":{"summary":"x"}}`, wire.CodeInvalidEnvelope, "7", "ref",
		},
	} {
		t.Run(name, func(t *testing.T) {
			limit := 1000
			if c.code != wire.CodeTooLarge {
				limit = wire.DefaultMaxEnvelopeBytes
			}
			e, err := wire.Decode([]byte(c.json), limit)
			if err == nil {
				err = e.Check()
			}
			refusal := wire.AsError(err)
			if err == nil || refusal.Code != c.code || !strings.Contains(refusal.Message, c.want) {
				t.Errorf("got %v, want code %s and a message about %q", err, c.code, c.want)
			}
			if e.ID != c.id {
				t.Errorf("id: got %q, want %q", e.ID, c.id)
			}
		})
	}
}

func TestReaddressChangesFromToAndRefAndNoOtherByte(t *testing.T) {
	for name, c := range map[string]struct{ raw, want string }{
		"all there": {
			`{"v":1, "id":"q1","from":"kit","to":"capability:x","ts":17,"kind":"query","ref":null,"payload":{"question":"a\u00e9  ","n":1.0e2},"x-trace":[1, 2]}`,
			`{"v":1, "id":"q1","from":"F","to":"T","ts":17,"kind":"query","ref":"R","payload":{"question":"a\u00e9  ","n":1.0e2},"x-trace":[1, 2]}`,
		},
		"none there": {`{"id":"q1","kind":"x"}`, `{"id":"q1","kind":"x","from":"F","to":"T","ref":"R"}`},
		"only inside": {
			`{"id":"q1","kind":"x","payload":{"from":"me","to":"you","ref":"this"}}`,
			`{"id":"q1","kind":"x","payload":{"from":"me","to":"you","ref":"this"},"from":"F","to":"T","ref":"R"}`,
		},
		"escaped key":   {`{"\u0066rom":"kit","id":"q1","kind":"x"}`, `{"\u0066rom":"F","id":"q1","kind":"x","to":"T","ref":"R"}`},
		"several lines": {"{\n \"id\": \"q1\",\r\n \"from\": null,\n \"kind\": \"x\"\n}\n", `{"id":"q1","from":"F","kind":"x","to":"T","ref":"R"}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(wire.Readdress([]byte(c.raw), "F", "T", "R")); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
	if got, want := string(wire.Readdress([]byte(`{"ref":"old","from":"a","to":"b"}`), "F", "T", "")), `{"ref":"old","from":"F","to":"T"}`; got != want {
		t.Errorf("without a ref: got %s, want %s", got, want)
	}
}

func TestEveryFaultHasACodeAndAStatusAndComesBack(t *testing.T) {
	for _, code := range core.Codes() {
		f := core.NewFault(code, "because")
		e := wire.ErrorOf(f)
		if status := wire.HTTPStatus(code); e.Code == "" || e.Code == wire.CodeInternal && code != core.CodeInternal || status < 400 {
			t.Errorf("%s: got the code %q and status %d, want a code of its own and the status of an error", code, e.Code, status)
			continue
		}
		want := code
		switch code { // ACP has one code for several faults
		case core.CodeUnauthenticated:
			want = core.CodeNotAuthorized
		case core.CodeUnknownTask:
			want = core.CodeUnknownAgent
		}
		if got := e.Fault(); got.Code != want || got.Message != f.Message || got.Retryable != f.Retryable {
			t.Errorf("%s over an error envelope: got %+v, want %+v", code, got, f)
		}
		got := answerOf(t, encode(t, wire.KindResult, wire.ResultOf(core.Answer{Fault: f}))).Fault
		if got.Message != f.Message || got.Code != want {
			t.Errorf("%s over the error of a result: got %+v, want %+v", code, got, f)
		}
	}
	for _, code := range []wire.Code{
		wire.CodeNotAuthorized, wire.CodeUnknownDomain, wire.CodeOverloaded, wire.CodeTimeout, wire.CodeCancelled, wire.CodeUnknownKind,
		wire.CodeIncompatibleVersion, wire.CodePeerNotFound, wire.CodeInvalidEnvelope, wire.CodeUnhandled, wire.CodeTooLarge,
		wire.CodeRateLimited, wire.CodeUnsupported, wire.CodeConflict, wire.CodeLoop, wire.CodeBudget,
	} {
		if f := (&wire.Error{Code: code}).Fault(); f.Code == core.CodeInternal {
			t.Errorf("%s: got internal, want a fault of its own", code)
		}
	}
	if got := (&wire.Error{Code: "out_of_milk", Message: "go shopping", Retryable: true}).Fault(); got.Code != core.CodeInternal || got.Message != "out_of_milk: go shopping" || !got.Retryable {
		t.Errorf("an unknown code: got %+v, want internal that names it", got)
	}
}

func TestAStructuredQuestionIsDataAndComesBack(t *testing.T) {
	now := time.Now()
	q := wire.Query{Question: json.RawMessage(`{"table":"swims","where":{"day":"Mon"}}`), DeadlineMS: 1000}
	r := wireRequestOf(t, encode(t, wire.KindQuery, q), now)
	if string(r.Data) != string(q.Question) || r.Content != string(q.Question) {
		t.Errorf("request: got content %q and data %s, want the structure in both", r.Content, r.Data)
	}
	if diff := cmp.Diff(q, wire.QueryOf(r, now)); diff != "" {
		t.Errorf("back (-want +got):\n%s", diff)
	}
}

func TestAFailedResultKeepsTheCodeOfItsFault(t *testing.T) {
	a := core.Answer{End: core.KindFailed, Fault: core.NewFault(core.CodeOverloaded, "try later")}
	r := wire.ResultOf(a)
	if r.Status != wire.StatusFailed || r.Error == nil || *r.Error != "overloaded: try later" || r.Outcome != "try later" {
		t.Fatalf("result: got %+v (error %v), want failed with overloaded: try later", r, r.Error)
	}
	got := bodiesOf(t, encode(t, wire.KindResult, r))
	if diff := cmp.Diff([]core.Body{core.Failed{Fault: a.Fault}}, got, cmp.AllowUnexported(core.Fault{})); diff != "" {
		t.Errorf("bodies (-want +got):\n%s", diff)
	}
	plain := wire.Result{Status: wire.StatusFailed, Outcome: "could not", Error: new("the family contact's phone is off")}
	want := core.NewFault(core.CodeInternal, "the family contact's phone is off")
	if diff := cmp.Diff([]core.Body{core.Text{Text: "could not"}, core.Failed{Fault: want}}, bodiesOf(t, encode(t, wire.KindResult, plain)), cmp.AllowUnexported(core.Fault{})); diff != "" {
		t.Errorf("bodies of the draft's own (-want +got):\n%s", diff)
	}
}

func TestTheIDOfAnEnvelopeIsAUUIDOfVersion4(t *testing.T) {
	form := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)
	seen := map[string]bool{}
	for range 1000 {
		id := wire.NewID()
		if !form.MatchString(id) || seen[id] {
			t.Fatalf("got %q, want a fresh UUID of version 4", id)
		}
		seen[id] = true
	}
}
