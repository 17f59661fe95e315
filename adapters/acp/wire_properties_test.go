package acp_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// word is any text that JSON can hold.
var word = rapid.String().Filter(utf8.ValidString)

// object is a JSON object whose keys none of ours has.
var object = rapid.Custom(func(t *rapid.T) json.RawMessage {
	return wire.Marshal(rapid.MapOfN(rapid.StringMatching(`x[a-z]{0,6}`), word, 1, 4).Draw(t, "members"))
})

var anyValue = rapid.Custom(func(t *rapid.T) json.RawMessage {
	switch rapid.IntRange(0, 6).Draw(t, "type") {
	case 0:
		return nil
	case 1:
		return wire.Marshal(rapid.Int64().Draw(t, "number"))
	case 2:
		return wire.Marshal(word.Draw(t, "text"))
	case 3:
		return wire.Marshal(rapid.SliceOf(word).Draw(t, "array"))
	case 4:
		return json.RawMessage(`{}`)
	case 5:
		return wire.SetMembers([]byte(`{}`), wire.Field{Key: rapid.SampledFrom([]string{"value", "files"}).Draw(t, "key"), Value: wire.Marshal(word.Draw(t, "member"))})
	}
	return object.Draw(t, "object")
})

var aFile = rapid.Custom(func(t *rapid.T) core.File {
	return core.File{
		Name: rapid.StringMatching(`[a-z.]{1,8}`).Draw(t, "name"), MediaType: word.Draw(t, "type"),
		Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
	}
})

var aTurn = rapid.Custom(func(t *rapid.T) core.Turn {
	return core.Turn{
		Role: rapid.SampledFrom([]core.Role{core.RoleUser, core.RoleAssistant}).Draw(t, "role"), Text: word.Draw(t, "text"),
		Agent: core.AgentID(word.Draw(t, "agent")),
	}
})

var same = cmp.Options{cmpopts.EquateEmpty(), cmp.AllowUnexported(core.Address{}, core.Fault{})}

func TestARequestSurvivesBeingAQueryOrADelegate(t *testing.T) {
	now := time.UnixMilli(1771108000000)
	rapid.Check(t, func(t *rapid.T) {
		want := core.Request{
			Content:     word.Filter(func(s string) bool { return s != "" }).Draw(t, "content"),
			Data:        anyValue.Filter(func(v json.RawMessage) bool { return string(v) != "null" }).Draw(t, "data"),
			Attachments: rapid.SliceOfN(aFile, 0, 3).Draw(t, "files"),
			History:     rapid.SliceOfN(aTurn, 0, 3).Draw(t, "history"),
			Domain:      word.Draw(t, "domain"),
			MaxTokens:   rapid.Int64Range(0, 1<<40).Draw(t, "max tokens"),
			Deadline:    now.Add(time.Duration(rapid.IntRange(1, 1<<30).Draw(t, "deadline")) * time.Millisecond),
			ReportBack:  true,
		}
		if rapid.Bool().Draw(t, "has a context") {
			want.Context = object.Draw(t, "context")
		}
		want.Intent = core.IntentAsk
		if diff := cmp.Diff(want, wireRequestOf(t, encode(t, wire.KindQuery, wire.QueryOf(want, now)), now), same); diff != "" {
			t.Fatalf("as a query (-want +got):\n%s", diff)
		}
		want.Intent = core.IntentDelegate
		if rapid.Bool().Draw(t, "urgent") {
			want.Priority = core.PriorityUrgent
		}
		if diff := cmp.Diff(want, wireRequestOf(t, encode(t, wire.KindDelegate, wire.DelegateOf(want, now)), now), same); diff != "" {
			t.Fatalf("as a delegate (-want +got):\n%s", diff)
		}
	})
}

func TestAnAnswerSurvivesBeingAResponseOrAResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tokens := rapid.Int64Range(0, 1<<40).Draw(t, "tokens")
		want := core.Answer{
			Text:      word.Draw(t, "text"),
			Data:      anyValue.Filter(func(v json.RawMessage) bool { return string(v) != "null" }).Draw(t, "data"),
			Files:     rapid.SliceOfN(aFile, 0, 3).Draw(t, "files"),
			Truncated: rapid.Bool().Draw(t, "truncated"), TokensUsed: tokens, Usage: core.Usage{Output: tokens}, End: core.KindDone,
		}
		if want.Text == "" {
			want.Text = dataText(t, want.Data)
		}
		if diff := cmp.Diff(want, answerOf(t, encode(t, wire.KindResponse, wire.ResponseOf(want))), same); diff != "" {
			t.Fatalf("as a response (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, answerOf(t, encode(t, wire.KindResult, wire.ResultOf(want))), same); diff != "" {
			t.Fatalf("as a result (-want +got):\n%s", diff)
		}
	})
}

func TestAFailureSurvivesBeingAnError(t *testing.T) {
	for name, want := range map[string]core.Answer{
		"bare":      {},
		"text":      {Text: "ro"},
		"files":     {Files: []core.File{{Name: "f", Data: []byte{1}}}},
		"tokens":    {Usage: core.Usage{Output: 3}, TokensUsed: 3},
		"all of it": {Text: "ro", Files: []core.File{{Name: "f", Data: []byte{1}}}, Usage: core.Usage{Output: 3}, TokensUsed: 3},
	} {
		want.End, want.Fault = core.KindFailed, core.NewFault(core.CodeBudget, "no money")
		if diff := cmp.Diff(want, answerOf(t, encode(t, wire.KindError, wire.FailureOf(want))), same); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestANoticeSurvivesBeingANotify(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := core.Notice{
			Topic: rapid.StringMatching(`[a-z.]{1,12}`).Draw(t, "topic"), Data: orNull(anyValue.Draw(t, "data")),
			Importance: core.Importance(rapid.IntRange(1, 3).Draw(t, "importance")),
		}
		var n wire.Notify
		if err := encode(t, wire.KindNotify, wire.NotifyOf(want)).Read(&n); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(&want, n.Request().Notice); diff != "" {
			t.Fatalf("notice (-want +got):\n%s", diff)
		}
	})
}

// eventOf draws an event of each kind that progress can say.
var eventOf = map[core.Kind]*rapid.Generator[core.Body]{
	core.KindText:     drawn(func(t *rapid.T) core.Body { return core.Text{Text: word.Draw(t, "text")} }),
	core.KindThinking: drawn(func(t *rapid.T) core.Body { return core.Thinking{Text: word.Draw(t, "text")} }),
	core.KindAccepted: drawn(func(t *rapid.T) core.Body {
		return core.Accepted{Estimate: time.Duration(rapid.IntRange(0, 1<<30).Draw(t, "ms")) * time.Millisecond}
	}),
	core.KindSessionStarted: drawn(func(t *rapid.T) core.Body { return core.SessionStarted{Session: word.Draw(t, "session")} }),
	core.KindForeign: drawn(func(t *rapid.T) core.Body {
		return core.ForeignFrame{Dialect: word.Draw(t, "dialect"), Name: word.Draw(t, "name")}
	}),
	core.KindSessionLost: drawn(func(t *rapid.T) core.Body { return core.SessionLost{Reason: word.Draw(t, "reason")} }),
	core.KindToolCall:    drawn(func(t *rapid.T) core.Body { return aCall.Draw(t, "call") }),
	core.KindToolState: drawn(func(t *rapid.T) core.Body {
		return core.ToolState{ID: anID.Draw(t, "id"), State: core.ToolCondition(rapid.IntRange(1, 8).Draw(t, "state")), Detail: word.Draw(t, "detail")}
	}),
	core.KindToolResult: drawn(func(t *rapid.T) core.Body {
		return core.ToolResult{ID: anID.Draw(t, "id"), Output: word.Draw(t, "output"), IsError: rapid.Bool().Draw(t, "error")}
	}),
	core.KindApprovalRequested: drawn(func(t *rapid.T) core.Body {
		c := aCall.Draw(t, "call")
		return core.ApprovalRequested{ID: c.ID, Name: c.Name, Input: c.Input}
	}),
	core.KindApprovalDecided: drawn(func(t *rapid.T) core.Body {
		return core.ApprovalDecided{
			ID: anID.Draw(t, "id"), Approved: rapid.Bool().Draw(t, "approved"), All: rapid.Bool().Draw(t, "all"), By: word.Draw(t, "by"), Reason: word.Draw(t, "reason"),
		}
	}),
	core.KindQuestionAsked: drawn(func(t *rapid.T) core.Body {
		option := rapid.Custom(func(t *rapid.T) core.Option {
			return core.Option{Label: word.Draw(t, "label"), Description: word.Draw(t, "description")}
		})
		return core.QuestionAsked{
			ID: anID.Draw(t, "id"), Text: word.Draw(t, "text"), Header: word.Draw(t, "header"), Several: rapid.Bool().Draw(t, "several"),
			Options: rapid.SliceOfN(option, 1, 3).Draw(t, "options"), Until: time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "until"), 0).UTC(),
		}
	}),
	core.KindQuestionAnswered: drawn(func(t *rapid.T) core.Body {
		return core.QuestionAnswered{
			ID: anID.Draw(t, "id"), Answered: rapid.Bool().Draw(t, "answered"), Selected: rapid.SliceOfN(word, 1, 3).Draw(t, "selected"),
			Text: word.Draw(t, "text"), Reason: word.Draw(t, "reason"), By: word.Draw(t, "by"),
		}
	}),
	core.KindInjected: drawn(func(t *rapid.T) core.Body {
		return core.Injected{
			ID: anID.Draw(t, "id"), Content: word.Draw(t, "content"), Source: word.Draw(t, "source"),
			Priority: rapid.SampledFrom([]core.InjectionPriority{core.InjectionImmediate, core.InjectionNormal, core.InjectionDeferred}).Draw(t, "priority"),
		}
	}),
	core.KindInjectionAnswered: drawn(func(t *rapid.T) core.Body {
		return core.InjectionAnswered{ID: anID.Draw(t, "id"), Accepted: rapid.Bool().Draw(t, "accepted"), Reason: word.Draw(t, "reason")}
	}),
	core.KindFile: drawn(func(t *rapid.T) core.Body { return aFile.Draw(t, "file") }),
	core.KindUsage: drawn(func(t *rapid.T) core.Body {
		n := rapid.Int64Range(0, 1<<50)
		return core.Usage{
			Input: n.Draw(t, "in"), Output: n.Draw(t, "out"), CacheRead: n.Draw(t, "read"), CacheWrite: n.Draw(t, "write"), Thinking: n.Draw(t, "thinking"),
		}
	}),
	core.KindRetrying: drawn(func(t *rapid.T) core.Body {
		return core.Retrying{Attempt: rapid.IntRange(1, 9).Draw(t, "attempt"), Agent: core.AgentID(word.Draw(t, "agent")), Fault: aFault.Draw(t, "fault")}
	}),
}

func drawn(draw func(*rapid.T) core.Body) *rapid.Generator[core.Body] { return rapid.Custom(draw) }

var anID = rapid.StringMatching(`[a-z0-9]{1,8}`)

var aCall = rapid.Custom(func(t *rapid.T) core.ToolCall {
	input := rapid.OneOf(word, rapid.Map(rapid.Map(anyValue, orNull), func(v json.RawMessage) string { return string(v) }))
	return core.ToolCall{ID: anID.Draw(t, "id"), Name: anID.Draw(t, "name"), Input: input.Draw(t, "input")}
})

var aFault = rapid.Custom(func(t *rapid.T) *core.Fault {
	return &core.Fault{
		Code: rapid.SampledFrom(core.Codes()).Draw(t, "code"), Message: word.Draw(t, "message"), Retryable: rapid.Bool().Draw(t, "retryable"),
	}
})

func TestAnEventOfEveryKindThatProgressCanSaySurvivesIt(t *testing.T) {
	for _, kind := range core.Kinds() {
		event := eventOf[kind]
		if !wire.CanProgress(kind) {
			continue
		}
		if event == nil {
			t.Errorf("got nothing that draws a %s, want every kind of progress drawn", kind)
			continue
		}
		t.Run(kind.String(), func(t *testing.T) { rapid.Check(t, func(t *rapid.T) { survivesProgress(t, event.Draw(t, "event")) }) })
	}
}

// survivesProgress holds an event against what a progress envelope makes of it, and
// the envelope against what the event makes of that.
func survivesProgress(t *rapid.T, want core.Body) {
	seq := rapid.Uint64Range(1, 1<<53).Draw(t, "seq")
	e := wire.Envelope{ID: "p", From: "a", To: "b", Kind: wire.KindProgress, Ref: "q", Payload: wire.ProgressOf(seq, want)}
	e.Raw = e.Encode()
	if err := e.Check(); err != nil {
		t.Fatalf("Check of %s: got %v, want no error", e.Raw, err)
	}
	read, err := wire.Decode(e.Raw, wire.DefaultMaxEnvelopeBytes)
	if err != nil {
		t.Fatalf("Decode of %s: got %v, want no error", e.Raw, err)
	}
	gotSeq, got, err := read.Progress()
	if err != nil || gotSeq != seq {
		t.Fatalf("readProgress of %s: got seq %d and %v, want %d and no error", e.Raw, gotSeq, err, seq)
	}
	if diff := cmp.Diff(want, got, same, cmp.FilterPath(isInput, cmp.Comparer(sameInput))); diff != "" {
		t.Fatalf("event (-want +got):\n%s", diff)
	}
	if again := wire.ProgressOf(gotSeq, got); string(again) != string(read.Payload) {
		t.Fatalf("progress: got  %s\nwant %s", again, read.Payload)
	}
}

func TestSetAndDropMemberAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		have := rapid.MapOfN(word, rapid.Map(anyValue, orNull), 0, 5).Draw(t, "object")
		text := wire.Marshal(have)
		if rapid.Bool().Draw(t, "indented") {
			text, _ = json.MarshalIndent(have, " ", "\t")
		}
		key, value := word.Draw(t, "key"), orNull(anyValue.Draw(t, "value"))
		if len(have) > 0 && rapid.Bool().Draw(t, "known key") {
			key = rapid.SampledFrom(keys(have)).Draw(t, "which")
		}
		want := map[string]json.RawMessage{}
		for k, v := range have {
			want[k] = v
		}
		want[key] = value
		compare(t, "set", wire.SetMembers(text, wire.Field{Key: key, Value: value}), want)
		delete(want, key)
		rest, _ := strictjson.ParseValid(text).Without(key)
		compare(t, "dropped", rest, want)
	})
}

func TestEverySampleOfTheSchemasIsRead(t *testing.T) {
	files, err := filepath.Glob("../../schemas/acp/samples/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("samples: got %d and error %v, want some", len(files), err)
	}
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var shown map[string]json.RawMessage
		if err := json.Unmarshal(raw, &shown); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if _, ok := shown["id"]; !ok {
			raw = wire.SetMembers(raw, wire.Field{Key: "id", Value: []byte(`"1"`)})
		}
		e, err := wire.Decode(raw, wire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err == nil && e.Kind == wire.KindProgress {
			_, _, err = e.Progress()
		}
		if err != nil {
			t.Errorf("%s: got %v, want no error", file, err)
		}
	}
}

func TestEveryEnvelopeInTheDocumentationIsRead(t *testing.T) {
	text, err := os.ReadFile("../../docs/dialects/acp.md")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, `{"v":1,`) {
			continue
		}
		n++
		e, err := wire.Decode([]byte(line), wire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err != nil {
			t.Errorf("%s: got %v, want no error", line, err)
		}
	}
	if n == 0 {
		t.Error("got no envelope, want some")
	}
}

// encode returns the envelope with a payload as its recipient decodes and checks it.
func encode(t rapid.TB, kind wire.Kind, payload any) wire.Envelope {
	t.Helper()
	raw := wire.Envelope{ID: "1", From: "a", To: "b", TS: 1, Kind: kind, Ref: "r", Payload: wire.Marshal(payload)}.Encode()
	e, err := wire.Decode(raw, len(raw))
	if err == nil {
		err = e.Check()
	}
	if err != nil {
		t.Fatalf("reading %s: got %v, want no error", raw, err)
	}
	return e
}

func wireRequestOf(t rapid.TB, e wire.Envelope, now time.Time) core.Request {
	t.Helper()
	r, err := e.Request(now)
	if err != nil {
		t.Fatalf("the request in %s: got %v, want no error", e.Raw, err)
	}
	return r
}

func bodiesOf(t rapid.TB, e wire.Envelope) []core.Body {
	t.Helper()
	bodies, err := e.Bodies()
	if err != nil {
		t.Fatalf("the answer in %s: got %v, want no error", e.Raw, err)
	}
	return bodies
}

func answerOf(t rapid.TB, e wire.Envelope) core.Answer {
	t.Helper()
	return foldBodies(bodiesOf(t, e))
}

// dataText returns the text that an answer without one has: its data on one line, unless
// that is an object or an array, or "done".
func dataText(t *rapid.T, data json.RawMessage) string {
	t.Helper()
	if len(data) == 0 {
		return "done"
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, data); err != nil {
		t.Fatal(err)
	}
	switch text := compact.String(); {
	case text[0] == '{' || text[0] == '[':
		return ""
	case len(text) > 4<<10:
		return wire.Summary(text)
	default:
		return text
	}
}

func orNull(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("null")
	}
	return data
}

func foldBodies(bodies []core.Body) core.Answer {
	var events []core.Event
	for _, b := range bodies {
		events = append(events, core.Event{Body: b})
	}
	return core.Fold(events)
}

func keys(m map[string]json.RawMessage) []string {
	var all []string
	for k := range m {
		all = append(all, k)
	}
	return all
}

func compare(t *rapid.T, what string, got []byte, want map[string]json.RawMessage) {
	t.Helper()
	var have map[string]json.RawMessage
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatalf("%s: got %s, which is not JSON: %v", what, got, err)
	}
	if len(have) != len(want) {
		t.Fatalf("%s: got %s, want %v", what, got, want)
	}
	for k, v := range want {
		var a, b any
		_ = json.Unmarshal(v, &a)
		_ = json.Unmarshal(have[k], &b)
		if diff := cmp.Diff(a, b); diff != "" {
			t.Fatalf("%s: member %q (-want +got):\n%s", what, k, diff)
		}
	}
}

func isInput(p cmp.Path) bool { return p.Last().String() == ".Input" }

// sameInput compares the input of tools, whose blanks between values mean nothing.
func sameInput(a, b string) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, []byte(a)) != nil || json.Compact(&y, []byte(b)) != nil {
		return a == b
	}
	return x.String() == y.String()
}
