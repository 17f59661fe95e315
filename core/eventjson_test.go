package core_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestAnEventOfAnyKindSurvivesItsJSONForm(t *testing.T) {
	for _, k := range core.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				want := coretest.EventOf(k).Draw(t, "event")
				text, err := json.Marshal(want)
				if err != nil {
					t.Fatalf("writing: got %v, want no error", err)
				}
				var got core.Event
				if err := json.Unmarshal(text, &got); err != nil {
					t.Fatalf("reading %s: got %v, want no error", text, err)
				}
				if d := cmp.Diff(want, got, coretest.Compare); d != "" {
					t.Fatalf("the event (-want +got):\n%s", d)
				}
			})
		})
	}
}

func TestMergedTextSurvivesItsJSONForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := core.MergeText(pieces(t))
		text, err := json.Marshal(want)
		if err != nil {
			t.Fatalf("writing: got %v, want no error", err)
		}
		var got core.Event
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatalf("reading %s: got %v, want no error", text, err)
		}
		if d := cmp.Diff(want, got, coretest.Compare); d != "" {
			t.Fatalf("the event (-want +got):\n%s", d)
		}
	})
}

func TestTheJSONFormOfAnEventDoesNotChange(t *testing.T) { wantGolden(t, "events.jsonl", oneOfEach()) }

func TestTheGoldenEventsHaveEveryKind(t *testing.T) {
	seen := map[core.Kind]bool{}
	for _, e := range oneOfEach() {
		seen[e.Body.Kind()] = true
	}
	for _, k := range core.Kinds() {
		if !seen[k] {
			t.Errorf("got no event of kind %s, want one", k)
		}
	}
}

// oneOfEach is an event of every kind with all that it can hold, and text in its
// other forms.
func oneOfEach() []core.Event {
	at := time.Date(2026, 1, 2, 3, 4, 5, 600_000_000, time.UTC)
	fault := core.NewFault(core.CodeOverloaded, "too much to do")
	fault.PeerCode = "BUSY"
	bodies := []core.Body{
		core.Opened{
			Task: "0197-task", From: core.Principal{ID: "ana", Dialect: "pi", Authenticated: true, Operator: true},
			Request: core.Request{
				Intent: core.IntentDelegate, To: core.ToCapability("write", "check"), Thread: "thread", Content: "a < b & c",
				Data: json.RawMessage(`{"n":1}`), Attachments: []core.File{{Name: "a.txt", MediaType: "text/plain", Data: []byte("a")}},
				History: []core.Turn{
					{Role: core.RoleUser, Text: "before", Task: "0196-task", At: at},
					{Role: core.RoleAssistant, Text: "then", Agent: "ben", Task: "0196-task", At: at},
				},
				Context: json.RawMessage(`{"k":"v"}`), Domain: "family.calendar", Priority: core.PriorityUrgent, MaxTokens: 100,
				Deadline: at.Add(time.Minute), ReportBack: true, Cause: "0195-task",
				Notice:  &core.Notice{Topic: "door.open", Data: json.RawMessage(`[true]`), Importance: core.ImportanceHigh},
				Foreign: &core.Foreign{Dialect: "acp", JSON: json.RawMessage(`{"x":1.0}`)},
			},
			Hops: 2, Chain: []core.AgentID{"one", "two"}, Trace: core.Trace{Parent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", State: "a=b"},
		},
		core.Opened{Task: "0197-task", From: core.Principal{ID: "ana"}, Request: core.Request{Intent: core.IntentAsk, To: core.ToAgent("ben"), Content: "hello"}},
		core.Assigned{Agent: "ben", Attempt: 1},
		core.Accepted{Estimate: 1500 * time.Millisecond},
		core.Accepted{},
		core.SessionStarted{Session: "s1"},
		core.SessionLost{Reason: "restarted"},
		core.Thinking{Text: "hm"},
		core.Text{Text: "Grüße \u2028 \x00 \"quoted\"\n"},
		core.ToolCall{ID: "t1", Name: "bash", Input: `{"command":"ls"}`},
		core.ToolState{ID: "t1", State: core.ToolAwaitingApproval, Detail: "ask"},
		core.ToolResult{ID: "t1", Output: "a.txt", IsError: true},
		core.ApprovalRequested{ID: "t1", Name: "bash", Input: "ls"},
		core.ApprovalDecided{ID: "t1", Approved: true, All: true, By: "ana", Reason: "fine", Option: "o1"},
		core.Injected{ID: "i1", Content: "by the way", Priority: core.InjectionImmediate, Source: "system"},
		core.InjectionAnswered{ID: "i1", Accepted: false, Reason: "busy"},
		core.File{Name: "b.bin", MediaType: "application/octet-stream", Data: []byte{0, 255}},
		core.Usage{Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, Thinking: 5},
		core.Retrying{Attempt: 1, Agent: "ben", Fault: fault},
		core.CancelRequested{By: "ana", Reason: "changed my mind"},
		core.ForeignFrame{Dialect: "acp", Name: "dance"},
		core.Done{Text: "whole", Data: json.RawMessage(`{"ok":true}`), Truncated: true, TokensUsed: 7},
		core.Done{},
		core.Failed{Fault: core.NewFault(core.CodeInternal, core.InternalMessage)},
		core.Cancelled{Reason: "changed my mind"},
		core.QuestionAsked{ID: "q1", Text: "Which?", Header: "Way", Options: []core.Option{{Label: "left", Description: "the short one"}, {Label: "right"}}, Several: true, Until: at},
		core.QuestionAnswered{ID: "q1", Answered: true, Selected: []string{"left"}, Text: "if it is dry", By: "ana"},
		core.QuestionAnswered{ID: "q2", Answered: true, Content: json.RawMessage(`{"n":1}`), By: "ana"},
		core.QuestionAnswered{ID: "q3", Reason: core.QuestionTimedOut},
	}
	events := make([]core.Event, 0, len(bodies)+3)
	for i, b := range bodies {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, At: at, Body: b})
	}
	return append(events,
		core.Event{Seq: 100, Epoch: 2, At: at, Body: core.Text{Text: "onetwo"}, Merged: &core.Merged{Cuts: []int{3, 3}}},
		core.Event{Seq: 103, Epoch: 2, At: at, Body: core.Text{Text: "x"}, Foreign: &core.Foreign{Dialect: "pi", JSON: json.RawMessage(`{"y":[1,null]}`)}},
		core.Event{Seq: 104, Epoch: 2, At: at, Body: core.Text{Text: "z"}, Foreign: &core.Foreign{Dialect: "coven", Wire: []byte{1, 2}}},
	)
}

func TestAnEventThatCannotBeReadSaysWhy(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		code core.Code
		says string
	}{
		"an unknown kind":          {`{"seq":1,"kind":"dance","body":{}}`, core.CodeUnknownKind, `"dance"`},
		"no kind":                  {`{"seq":1,"body":{}}`, core.CodeUnknownKind, `""`},
		"no body":                  {`{"seq":4,"kind":"text"}`, core.CodeInvalid, "event 4 of kind text: the body is missing"},
		"a body of null":           {`{"seq":1,"kind":"text","body":null}`, core.CodeInvalid, "the body is missing"},
		"an unknown tool state":    {`{"seq":1,"kind":"tool_state","body":{"id":"t","state":"gone"}}`, core.CodeInvalid, `unknown tool state "gone"`},
		"merged what is not text":  {`{"seq":1,"kind":"done","body":{},"merged":{"cuts":[0]}}`, core.CodeInvalid, "cuts"},
		"a cut outside of text":    {`{"seq":1,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[3]}}`, core.CodeInvalid, "cuts"},
		"a cut before text":        {`{"seq":1,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[-1]}}`, core.CodeInvalid, "cuts"},
		"cuts in a disorder":       {`{"seq":1,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[2,1]}}`, core.CodeInvalid, "cuts"},
		"an address with a hole":   {`{"seq":1,"kind":"opened","body":{"task":"t","request":{"to":"domain:a..b"}}}`, core.CodeInvalid, "a part of the domain is empty"},
		"an intent without a name": {`{"seq":1,"kind":"opened","body":{"task":"t","request":{"intent":"beg"}}}`, core.CodeInvalid, `unknown intent "beg"`},
	} {
		t.Run(name, func(t *testing.T) {
			var e core.Event
			err := json.Unmarshal([]byte(c.text), &e)
			if !errors.Is(err, &core.Fault{Code: c.code}) {
				t.Fatalf("got %v, want a %s fault", err, c.code)
			}
			if !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %q, want %q in it", err, c.says)
			}
			if e.Body != nil || e.Seq != 0 {
				t.Errorf("got the event %+v beside the error, want it untouched", e)
			}
		})
	}
	for _, text := range []string{`[]`, `"text"`, `{"seq":-1}`, `{"seq":"1"}`, `{"at":"yesterday"}`, `{"seq":1,"kind":"text","body":{"text":7}}`} {
		var e core.Event
		if err := json.Unmarshal([]byte(text), &e); err == nil {
			t.Errorf("reading %s: got %+v, want an error", text, e)
		}
	}
}

func TestAnEventWithoutABodyOrWithBrokenJSONInItIsNotWritten(t *testing.T) {
	broken := json.RawMessage(`{"n":`)
	for _, e := range []core.Event{
		{Seq: 7},
		{Seq: 7, Body: core.Done{Data: broken}},
		{Seq: 7, Body: core.Done{}, Foreign: &core.Foreign{Dialect: "pi", JSON: broken}},
	} {
		if text, err := json.Marshal(e); err == nil {
			t.Errorf("got %s, want an error", text)
		}
	}
}

func TestMembersThatAreNotKnownYetAreIgnored(t *testing.T) {
	var e core.Event
	text := `{"seq":1,"at":"2026-01-02T03:04:05Z","kind":"text","body":{"text":"hi","colour":"red"},"since":"version 9"}`
	if err := json.Unmarshal([]byte(text), &e); err != nil {
		t.Fatalf("got %v, want no error", err)
	}
	if got, want := e.Body, (core.Text{Text: "hi"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func FuzzEvent(f *testing.F) {
	for _, e := range oneOfEach() {
		line, err := json.Marshal(e)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(line)
	}
	f.Add([]byte(`{"seq":18446744073709551615,"kind":"text","body":{"text":"ab"},"merged":{"cuts":[0,1,2]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		var e core.Event
		if json.Unmarshal(text, &e) != nil {
			return
		}
		// Whatever was read can be used, and written and read again.
		e.Size()
		e.AfterSeq(e.Seq)
		core.Fold([]core.Event{e})
		again, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("writing what was read from %s: got %v, want no error", text, err)
		}
		var back core.Event
		if err := json.Unmarshal(again, &back); err != nil {
			t.Fatalf("reading %s: got %v, want no error", again, err)
		}
		third, err := json.Marshal(back)
		if err != nil || !bytes.Equal(again, third) {
			t.Fatalf("got %s and %v, want it stable: %s", third, err, again)
		}
	})
}

func TestATurnWithoutATimeHasNone(t *testing.T) {
	turn := core.Turn{Role: core.RoleUser, Text: "hi", Files: []core.File{{Name: "a"}}}
	for want, at := range map[string]time.Time{`{"role":"user","text":"hi"}`: {}, `{"role":"user","text":"hi","at":"1970-01-01T00:00:00Z"}`: time.Unix(0, 0).UTC()} {
		turn.At = at
		if got, err := json.Marshal(turn); err != nil || string(got) != want {
			t.Errorf("got %s and %v, want %s", got, err, want)
		}
	}
}

// TestAnEventIsWrittenAsByReflection holds what AppendJSON writes by hand against what
// encoding/json makes of the same types, byte for byte.
func TestAnEventIsWrittenAsByReflection(t *testing.T) {
	same := func(t rapid.TB, e core.Event) {
		want, err := json.Marshal(struct {
			Seq     uint64        `json:"seq"`
			Merged  *core.Merged  `json:"merged,omitempty"`
			Epoch   uint32        `json:"epoch,omitempty"`
			At      time.Time     `json:"at"`
			Kind    string        `json:"kind"`
			Body    core.Body     `json:"body"`
			Foreign *core.Foreign `json:"foreign,omitempty"`
		}{e.Seq, e.Merged, e.Epoch, e.At, e.Body.Kind().String(), e.Body, e.Foreign})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := e.AppendJSON(nil); err != nil || !bytes.Equal(got, want) {
			t.Errorf("got %s and %v, want %s", got, err, want)
		}
	}
	for _, e := range oneOfEach() {
		same(t, e)
	}
	for _, text := range []string{"", "\x7f", "\xff", "a\xc3", "\u2028\u2029", "<a href=\"x\">&</a>", `\`, "\t\b\f\r\n\x00\x1f", "grün 😀"} {
		same(t, core.Event{Body: core.Text{Text: text}})
		same(t, core.Event{Body: core.Opened{Task: core.TaskID(text), Request: core.Request{To: core.ToAgent(core.AgentID(text)), Content: text}}})
	}
	for _, k := range core.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) { same(t, coretest.EventOf(k).Draw(t, "event")) })
		})
	}
}

func TestAnEventThatHasNoJSONFormIsAnError(t *testing.T) {
	late := time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, e := range map[string]core.Event{
		"no body":                     {Seq: 1},
		"a time behind the year 9999": {Seq: 1, At: late, Body: core.Done{}},
		"such a deadline":             {Seq: 1, Body: core.Opened{Request: core.Request{Deadline: late}}},
		"data that is no JSON":        {Seq: 1, Body: core.Done{Data: json.RawMessage("{")}},
		"context that is no JSON":     {Seq: 1, Body: core.Opened{Request: core.Request{Context: json.RawMessage("x")}}},
	} {
		if got, err := e.AppendJSON(nil); err == nil {
			t.Errorf("%s: got %s, want an error", name, got)
		}
	}
}

// BenchmarkEvents writes the events of a question and its answer, as a journal does.
func BenchmarkEvents(b *testing.B) {
	at := time.Now()
	task := core.TaskID(core.NewID())
	var events []core.Event
	for i, body := range []core.Body{
		core.Opened{Task: task, From: core.Principal{ID: "pi-3", Dialect: "pi"}, Request: core.Request{
			Intent: core.IntentAsk, To: core.ToAgent("agent"), Thread: core.ThreadID(core.NewID()), Content: "What is the answer?", Deadline: at.Add(time.Minute),
		}},
		core.Assigned{Agent: "agent", Attempt: 1}, core.Accepted{}, core.Text{Text: "forty-two"}, core.Done{},
	} {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, At: at, Body: body})
	}
	var room []byte
	b.ReportAllocs()
	for b.Loop() {
		room = room[:0]
		for _, e := range events {
			var err error
			if room, err = e.AppendJSON(room); err != nil {
				b.Fatal(err)
			}
		}
	}
}
