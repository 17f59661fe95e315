package wire_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

var (
	words = rapid.StringMatching(`[a-zA-Z0-9 <>&"\\äß世]{0,12}`)
	word  = rapid.StringMatching(`[a-z][a-zA-Z]{0,8}`)
	blobs = rapid.SliceOfN(rapid.Byte(), 0, 24)
	files = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) core.File {
		return core.File{Name: word.Draw(t, "file"), MediaType: words.Draw(t, "type"), Data: blobs.Draw(t, "bytes")}
	}), 0, 3)
	// Some keys are known members, so that data looks like them.
	keys    = rapid.OneOf(word, rapid.SampledFrom([]string{"content", "data", "files", "text", "answer", "summary", "history", "attachments", "context", "notice"}))
	numbers = rapid.Int64Range(0, 1<<40)
)

// values generates JSON values, as Marshal writes them.
func values(depth int) *rapid.Generator[json.RawMessage] {
	return rapid.Custom(func(t *rapid.T) json.RawMessage {
		raw, err := strictjson.Marshal(value(t, depth))
		if err != nil {
			t.Fatal(err)
		}
		return raw
	})
}

func value(t *rapid.T, depth int) any {
	most := 6
	if depth == 0 {
		most = 4
	}
	switch rapid.IntRange(1, most).Draw(t, "form") {
	case 1:
		return nil
	case 2:
		return words.Draw(t, "string")
	case 3:
		return numbers.Draw(t, "number")
	case 4:
		return rapid.Bool().Draw(t, "boolean")
	case 5:
		list := []any{}
		for range rapid.IntRange(0, 3).Draw(t, "length") {
			list = append(list, value(t, depth-1))
		}
		return list
	}
	object := map[string]any{}
	for range rapid.IntRange(0, 3).Draw(t, "members") {
		object[keys.Draw(t, "key")] = value(t, depth-1)
	}
	return object
}

// through encodes a payload with unknown members, and decodes it again.
func through[P any](t *rapid.T, kind string, payload any, beside *core.Foreign) (P, wire.Message) {
	frame, err := wire.Encode(kind, "m1", time.Now(), payload)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	frame = wire.Restore(frame, beside)
	m, err := wire.Decode(frame)
	if err != nil {
		t.Fatalf("decode %s: %v", frame, err)
	}
	p, err := wire.ReadPayload[P](m)
	if err != nil {
		t.Fatalf("payload of %s: %v", frame, err)
	}
	return p, m
}

func TestAnswersSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := core.Answer{Text: words.Draw(t, "text"), Files: files.Draw(t, "files")}
		if rapid.Bool().Draw(t, "structured") {
			want.Data = values(3).Draw(t, "data")
		}
		p, err := wire.ResultOf(wire.TaskRef{TaskID: "t"}, want)
		if err != nil {
			t.Fatal(err)
		}
		p.Metadata = wire.ResultMetadata{TokensUsed: 7, Truncated: true}
		back, m := through[wire.TaskResult](t, wire.TypeTaskResult, p, nil)
		got := partsOf(back)
		if want.Text == "" && len(want.Files) == 0 {
			want.Text = partsOf(wire.TaskResult{Result: want.Data}).Text // such data is read as text too
			if len(want.Data) > 0 && want.Data[0] == '"' {
				want.Text = ""
			}
			if plain := partsOf(wire.TaskResult{Result: want.Data}); string(plain.Data) != string(want.Data) {
				want.Text = ""
			}
		}
		if len(want.Files) > 0 && want.Text == "" {
			got.Text = "" // the same with files
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s is read differently (-want +got):\n%s", m.Payload, diff)
		}
		if !back.Metadata.Truncated || back.Metadata.TokensUsed != 7 {
			t.Fatalf("metadata: got %+v, want truncated and 7 tokens", back.Metadata)
		}
	})
}

func TestTaskResultsSurviveARoundTripThroughEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		result, err := wire.EncodeResult(partsOf(wire.TaskResult{Result: values(3).Draw(t, "result")})) // its simplest form
		if err != nil {
			t.Fatal(err)
		}
		payload := map[string]any{"taskId": "t", "executionId": "e", "status": wire.StatusCompleted, "result": result}
		if rapid.Bool().Draw(t, "with metadata") {
			payload["metadata"] = map[string]any{"tokensUsed": rapid.Int64Range(1, 1<<40).Draw(t, "tokens"), "vendor": value(t, 2)}
		}
		if rapid.Bool().Draw(t, "with more") {
			payload["duration"], payload["trace"] = numbers.Draw(t, "duration"), value(t, 2)
		}
		p, m := through[wire.TaskResult](t, wire.TypeTaskResult, payload, around(t))
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		again, err := wire.ResultOf(p.TaskRef, whole)
		if err != nil {
			t.Fatal(err)
		}
		again.Metadata = wire.ResultMetadata{TokensUsed: wire.Count(whole.TokensUsed), Truncated: whole.Truncated}
		_, back := through[wire.TaskResult](t, wire.TypeTaskResult, again, m.Foreign(wire.ResultShape.Strip(m.Content())))
		sameFrame(t, m, back)
	})
}

// around generates unknown members around a payload.
func around(t *rapid.T) *core.Foreign {
	ms := wire.Members{}
	for range rapid.IntRange(0, 2).Draw(t, "members around") {
		ms[word.Draw(t, "name")+"Around"] = values(2).Draw(t, "around")
	}
	raw, err := strictjson.Marshal(ms)
	if err != nil {
		t.Fatal(err)
	}
	return &core.Foreign{Dialect: wire.Dialect, JSON: raw}
}

// sameFrame checks that two messages have the same payload and unknown members.
func sameFrame(t *rapid.T, want, got wire.Message) {
	t.Helper()
	if diff := cmp.Diff(anyOf(t, want.Payload), anyOf(t, got.Payload)); diff != "" {
		t.Fatalf("the payload differs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want.Foreign(nil), got.Foreign(nil)); diff != "" {
		t.Fatalf("members around the payload differ (-want +got):\n%s", diff)
	}
}

func anyOf(t *rapid.T, raw []byte) any {
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return v
}

func TestTaskErrorsSurviveARoundTripThroughEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.SampledFrom([]string{"PROCESSING_ERROR", "REJECTED", "TIMEOUT", "CANCELLED", "NO_AGENTS", "MY_OWN", "LOOP"})
		e := map[string]any{"code": own.Draw(t, "code"), "message": word.Draw(t, "message")}
		if rapid.Bool().Draw(t, "with details") {
			e["details"] = value(t, 2)
		}
		payload := map[string]any{"taskId": "t", "error": e, "retryable": e["code"] != "CANCELLED" && rapid.Bool().Draw(t, "retryable")}
		if partial := (core.Answer{Text: words.Draw(t, "partial text"), Files: files.Draw(t, "partial files")}); partial.Text != "" || len(partial.Files) > 0 {
			value, err := wire.EncodeResult(partial)
			if err != nil {
				t.Fatal(err)
			}
			payload["partialResult"] = value
		}
		if rapid.Bool().Draw(t, "with metadata") {
			payload["metadata"] = map[string]any{"tokensUsed": rapid.Int64Range(1, 1<<40).Draw(t, "tokens"), "vendor": value(t, 2)}
		}
		p, m := through[wire.TaskError](t, wire.TypeTaskError, payload, around(t))
		whole := core.Fold(eventsOf(p.Bodies(false, false)))
		foreign := wire.WithCode(m.Foreign(wire.ErrorShape.Strip(m.Content())), p.End())
		again := wire.TaskErrorOf(p.TaskRef, whole.Fault, foreign)
		if err := again.SetPartial(whole, wire.ResultMetadata{TokensUsed: wire.Count(whole.TokensUsed)}); err != nil {
			t.Fatal(err)
		}
		_, back := through[wire.TaskError](t, wire.TypeTaskError, again, foreign)
		sameFrame(t, m, back)
	})
}

// progressEvent generates an event that an agent may send as progress.
func progressEvent(t *rapid.T) core.Body {
	id := word.Draw(t, "id")
	switch rapid.IntRange(1, 9).Draw(t, "kind") {
	case 1:
		return core.Text{Text: words.Draw(t, "text")}
	case 2:
		return core.Thinking{Text: words.Draw(t, "thinking")}
	case 3:
		// White space around JSON is not kept.
		input := rapid.OneOf(rapid.Map(words, strings.TrimSpace), rapid.Map(values(2), func(v json.RawMessage) string { return string(v) }), rapid.Just(`{"a":1,"a":2}`)).Draw(t, "input")
		return core.ToolCall{ID: id, Name: word.Draw(t, "name"), Input: input}
	case 4:
		return core.ToolState{ID: id, State: core.ToolCondition(rapid.IntRange(1, 8).Draw(t, "state")), Detail: words.Draw(t, "detail")}
	case 5:
		return core.ToolResult{ID: id, Output: words.Draw(t, "output"), IsError: rapid.Bool().Draw(t, "error")}
	case 6:
		return core.Usage{Input: numbers.Draw(t, "in"), Output: numbers.Draw(t, "out"), CacheRead: numbers.Draw(t, "read"), CacheWrite: numbers.Draw(t, "write"), Thinking: numbers.Draw(t, "think")}
	case 7:
		return core.File{Name: id, MediaType: words.Draw(t, "type"), Data: blobs.Draw(t, "data")}
	case 8:
		return core.SessionStarted{Session: id}
	}
	return core.SessionLost{Reason: id}
}

func TestProgressSurvivesARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := progressEvent(t)
		i, ok := wire.ItemOf(want)
		if !ok {
			t.Fatalf("%s has no item, want one", want.Kind())
		}
		sent := wire.Progress{TaskRef: wire.TaskRef{TaskID: "t", ExecutionID: "e"}, Seq: 3, Item: i}
		p, m := through[wire.Progress](t, wire.TypeTaskProgress, sent, around(t))
		got, err := p.Bodies()
		if err != nil || len(got) != 1 {
			t.Fatalf("%s: got %v and %v, want one event", m.Payload, got, err)
		}
		if diff := cmp.Diff(want, got[0], cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("%s is read differently (-want +got):\n%s", m.Payload, diff)
		}
		again, _ := wire.ItemOf(got[0])
		_, back := through[wire.Progress](t, wire.TypeTaskProgress, wire.Progress{TaskRef: p.TaskRef, Seq: p.Seq, Item: again}, m.Foreign(p.Unknown))
		sameFrame(t, m, back)
	})
}

func TestRequestsSurviveARoundTrip(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	rapid.Check(t, func(t *rapid.T) {
		want := core.Request{
			Intent: core.Intent(rapid.IntRange(1, 3).Draw(t, "intent")), Thread: core.ThreadID(word.Draw(t, "thread")), Content: words.Draw(t, "content"),
			Attachments: files.Draw(t, "attachments"), Domain: words.Draw(t, "domain"), Priority: core.Priority(rapid.IntRange(1, 3).Draw(t, "priority")),
			MaxTokens: numbers.Draw(t, "max"), Deadline: now.Add(time.Duration(rapid.Int64Range(1, 1e9).Draw(t, "left")) * time.Millisecond),
			ReportBack: rapid.Bool().Draw(t, "report"),
		}
		if rapid.Bool().Draw(t, "structured") {
			want.Data = values(3).Draw(t, "data")
		}
		if rapid.Bool().Draw(t, "with context") {
			want.Context = json.RawMessage(`{"n":1}`)
		}
		for range rapid.IntRange(0, 2).Draw(t, "turns") {
			want.History = append(want.History, core.Turn{Role: core.Role(rapid.IntRange(1, 2).Draw(t, "role")), Text: words.Draw(t, "turn"), Agent: core.AgentID(word.Draw(t, "agent")), At: now})
		}
		if want.Intent == core.IntentNotify {
			want.Notice = &core.Notice{Topic: word.Draw(t, "topic"), Importance: core.Importance(rapid.IntRange(0, 3).Draw(t, "importance"))}
		}
		p, err := wire.TaskOf(want)
		if err != nil {
			t.Fatal(err)
		}
		p.TaskID, p.Timeout = "t", wire.MillisecondsOf(want.Deadline.Sub(now))
		back, m := through[wire.Task](t, wire.TypeTask, p, nil)
		got, err := back.Request(now)
		if err != nil {
			t.Fatalf("%s: %v", m.Payload, err)
		}
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.Comparer(func(a, b core.Address) bool { return a == b })); diff != "" {
			t.Fatalf("%s is read differently (-want +got):\n%s", m.Payload, diff)
		}
	})
}
