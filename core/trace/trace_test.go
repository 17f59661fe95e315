package trace_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/trace"
)

const (
	sampled   = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	unsampled = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"
)

var (
	all  = trace.NewSampler(1)
	none = trace.NewSampler(0)
)

func spanIn(t *testing.T, in core.Trace) core.Span {
	t.Helper()
	s, ok := in.Span()
	if !ok {
		t.Fatalf("got the trace %+v, want one with a span", in)
	}
	return s
}

func TestATaskIsInTheTraceOfItsCallElseOfItsCauseElseInANewOne(t *testing.T) {
	given, cause := core.Trace{Parent: sampled, State: "a=b"}, core.Trace{Parent: strings.Replace(sampled, "0af", "1af", 1), State: "c=d"}
	for name, tt := range map[string]struct {
		from  trace.Sampler
		o     policy.Opening
		above core.Trace
	}{
		"of its call":                  {none, policy.Opening{Given: given, IsCaused: true, Cause: cause}, given},
		"of its cause":                 {none, policy.Opening{IsCaused: true, Cause: cause}, cause},
		"new":                          {all, policy.Opening{}, core.Trace{}},
		"of its call, without a cause": {all, policy.Opening{Given: given}, given},
	} {
		got := tt.from.Open(tt.o)
		own := spanIn(t, got)
		above, is := tt.above.Span()
		if !own.Sampled || got.Above != tt.above.Parent || got.State != tt.above.State || is && (own.Trace != above.Trace || own.ID == above.ID) {
			t.Errorf("%s: got %+v, want a span of its own below %+v", name, got, tt.above)
		}
		if own.ID == ([8]byte{}) || own.Trace == ([16]byte{}) {
			t.Errorf("%s: got the span %+v, want ids", name, own)
		}
	}
}

func TestWhatIsBelowAnUnsampledSpanIsNotSampled(t *testing.T) {
	out := core.Trace{Parent: unsampled, State: "a=b"}
	for name, o := range map[string]policy.Opening{
		"of its call":                {Given: out},
		"of its call, not the cause": {Given: out, IsCaused: true, Cause: core.Trace{Parent: sampled}},
		"of its cause":               {IsCaused: true, Cause: out},
	} {
		if got := all.Open(o); got != out {
			t.Errorf("%s: got %+v, want what it is below: %+v", name, got, out)
		}
	}
	if got := all.Open(policy.Opening{IsCaused: true}); got != (core.Trace{}) {
		t.Errorf("below a task without a trace: got %+v, want none", got)
	}
}

func TestTheRatioOfNewTracesIsSampled(t *testing.T) {
	const n = 20_000
	for ratio, want := range map[float64]int{0: 0, 0.25: n / 4, 1: n} {
		got, s := 0, trace.NewSampler(ratio)
		for range n {
			if s.Open(policy.Opening{}).IsSampled() {
				got++
			}
		}
		if got < want-n/50 || got > want+n/50 {
			t.Errorf("ratio %v: got %d of %d sampled, want about %d", ratio, got, n, want)
		}
	}
}

func TestWhatIsNotSampledCostsNoAllocation(t *testing.T) {
	for name, o := range map[string]policy.Opening{
		"new": {}, "unsampled above": {Given: core.Trace{Parent: unsampled}}, "caused": {IsCaused: true}, "by a tool": {IsCaused: true, Cause: core.Trace{Parent: unsampled}, Tool: "agent_ask", Call: "1"},
	} {
		if got := testing.AllocsPerRun(100, func() { none.Open(o) }); got != 0 {
			t.Errorf("%s: got %v allocations, want 0", name, got)
		}
	}
}

func TestANoticeIsInATraceOfItsOwnThatIsLinked(t *testing.T) {
	got := none.Open(policy.Opening{IsCaused: true, Cause: core.Trace{Parent: sampled}, IsNotice: true})
	above, own := spanIn(t, core.Trace{Parent: sampled}), spanIn(t, got)
	if own.Trace == above.Trace || !own.Sampled {
		t.Fatalf("got %+v, want another trace, sampled as its cause", got)
	}
	spans := trace.Reader{}.Spans(story(core.Opened{Task: "n", Request: core.Request{Intent: core.IntentNotify, To: core.ToAgent("b")}, Trace: got}, core.Done{}))
	if len(spans) != 1 || spans[0].Parent != ([8]byte{}) || !slices.Equal(spans[0].Links, []trace.Link{{Trace: above.Trace, ID: above.ID}}) || spans[0].Name != "notify b" {
		t.Errorf("got %+v, want one span, notify b, without a parent and linked to its cause", spans)
	}
}

// story returns events, one each second.
func story(bodies ...core.Body) func(func(core.Event) bool) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var events []core.Event
	for i, b := range bodies {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, At: start.Add(time.Duration(i) * time.Second), Body: b})
	}
	return slices.Values(events)
}

func opened(in core.Trace) core.Opened {
	return core.Opened{
		Task: "t1", From: core.Principal{ID: "ana", Dialect: "coven"}, Hops: 2, Trace: in,
		Request: core.Request{Intent: core.IntentAsk, To: core.ToCapability("x"), Thread: "th", Content: "what is sk-secret?"},
	}
}

// told has the attributes of a span as text.
func told(all []trace.Attribute) map[string]any {
	out := map[string]any{}
	for _, a := range all {
		out[a.Key] = a.Value
	}
	return out
}

func TestATaskIsASpanWithItsToolCallsBelow(t *testing.T) {
	in := all.Open(policy.Opening{Given: core.Trace{Parent: sampled, State: "a=b"}})
	own := spanIn(t, in)
	r := trace.Reader{Translations: core.Translations{
		"coven":    {ToRequester: core.Table{core.KindThinking: {How: core.Folded}, core.KindAssigned: {How: core.Folded}, core.KindText: {How: core.Native}}},
		"parallax": {ToAgent: core.Table{core.KindApprovalDecided: {How: core.Refused}, core.KindOpened: {How: core.Folded}}, FromAgent: core.Table{core.KindText: {How: core.Folded}}},
	}}
	spans := r.Spans(story(
		opened(in), core.Assigned{Agent: "first", Attempt: 1},
		core.Retrying{Attempt: 1, Agent: "first", Fault: core.NewFault(core.CodeUnreachable, "gone")},
		core.Assigned{Agent: "shout", Attempt: 2, Dialect: "parallax"}, core.Accepted{}, core.Thinking{Text: "hm"}, core.Thinking{Text: "hm"},
		core.ToolCall{ID: "1", Name: "grep", Input: `{"secret":1}`}, core.ApprovalRequested{ID: "1", Name: "grep"}, core.ApprovalDecided{ID: "1", Approved: true, By: "ana"},
		core.ToolResult{ID: "1", Output: "found", IsError: true}, core.ToolCall{ID: "1", Name: "grep"}, core.Text{Text: "an"}, core.Text{Text: "swer"},
		core.Usage{Input: 10, Output: 5}, core.Usage{Input: 1}, core.Failed{Fault: core.NewFault(core.CodeTimeout, "sk-secret")},
	))
	if len(spans) != 3 {
		t.Fatalf("got %d spans, want 3", len(spans))
	}
	task, first, second := spans[0], spans[1], spans[2]
	if task.Name != "invoke_agent shout" || !task.IsClient || task.ID != own.ID || task.Trace != own.Trace || task.Parent != spanIn(t, core.Trace{Parent: sampled}).ID || task.State != "a=b" || !task.Failed || task.Message != "" {
		t.Errorf("task: got %+v", task)
	}
	if got := task.End.Sub(task.Start); got != 16*time.Second {
		t.Errorf("task: took %s, want 16s", got)
	}
	want := map[string]any{
		"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "dragoman", "gen_ai.agent.id": "shout", "gen_ai.agent.name": "shout", "gen_ai.conversation.id": "th",
		"gen_ai.usage.input_tokens": int64(11), "gen_ai.usage.output_tokens": int64(5), "error.type": "timeout",
		"dragoman.task.id": "t1", "dragoman.end": "failed", "dragoman.hops": int64(2), "dragoman.attempts": int64(2),
		"dragoman.dialect.from": "coven", "dragoman.dialect.to": "parallax", "dragoman.loss": []string{"approval_decided", "thinking"},
	}
	if diff := cmp.Diff(want, told(task.Attributes)); diff != "" {
		t.Errorf("attributes of the task (-want +got):\n%s", diff)
	}
	var moments []string
	for _, m := range task.Moments {
		moments = append(moments, m.Name)
	}
	if want := []string{"retrying", "accepted", "approval_requested", "approval_decided", "first_chunk"}; !slices.Equal(moments, want) {
		t.Errorf("moments: got %q, want %q", moments, want)
	}
	for _, s := range []trace.Span{first, second} {
		if s.Name != "execute_tool grep" || s.IsClient || s.Parent != own.ID || s.Trace != own.Trace || !s.Failed || s.End.IsZero() {
			t.Errorf("tool: got %+v", s)
		}
	}
	if first.ID == second.ID {
		t.Error("two calls of one id: got one id of a span, want two")
	}
	if got := told(first.Attributes); got["error.type"] != "tool_error" || got["gen_ai.tool.call.arguments"] != nil {
		t.Errorf("first call: got %v, want a tool_error and no arguments", got)
	}
	if got := told(second.Attributes)["error.type"]; got != "timeout" || !second.End.Equal(task.End) {
		t.Errorf("a call without a result: got %v at %s, want the end of its task", got, second.End)
	}
}

func TestATaskOfAToolIsBelowTheCall(t *testing.T) {
	cause := all.Open(policy.Opening{})
	op := policy.Opening{IsCaused: true, Cause: cause, Tool: "agent_ask", Call: "7"}
	shown := all.Open(op)
	above := trace.Reader{}.Spans(story(opened(cause), core.ToolCall{ID: "7", Name: "agent_ask"}, core.ToolResult{ID: "7"}, core.Done{}))
	below := trace.Reader{}.Spans(story(opened(shown), core.Done{}))
	if len(above) != 2 || len(below) != 1 || below[0].Parent != above[1].ID || below[0].Trace != above[1].Trace {
		t.Errorf("shown: got %+v below %+v, want it below the tool call", below, above)
	}
	if got := spanIn(t, all.Tool(cause, "7")).ID; got != above[1].ID {
		t.Errorf("the trace of a call: got the span %x, want %x", got, above[1].ID)
	}

	op.Call = ""
	spans := trace.Reader{}.Spans(story(opened(all.Open(op)), core.Done{}))
	if len(spans) != 2 || spans[1].Name != "execute_tool agent_ask" || spans[0].Parent != spans[1].ID || spans[1].Parent != above[0].ID {
		t.Errorf("not shown: got %+v, want a span of the tool between the task and its cause", spans)
	}
}

func TestContentIsExportedOnlyOnDemandRedactedAndCut(t *testing.T) {
	redactor, err := redact.New([]string{"sk-[a-z]+"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	in := all.Open(policy.Opening{})
	long := strings.Repeat("\u00e9", 20_000)
	events := story(opened(in), core.ToolCall{ID: "1", Name: "grep", Input: `{"key":"sk-secret"}`}, core.ToolResult{ID: "1", Output: long}, core.Text{Text: "it is sk-sec"}, core.Text{Text: "ret"},
		core.Failed{Fault: core.NewFault(core.CodeInternal, "sk-secret")})
	silent, err := json.Marshal(trace.Reader{}.Spans(events))
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range []string{"secret", "what is", "it is", "\u00e9"} {
		if strings.Contains(string(silent), word) {
			t.Errorf("without content: got %q in %s", word, silent)
		}
	}
	spans := trace.Reader{Content: true, Redact: func() *redact.Redactor { return redactor }}.Spans(events)
	loud, err := json.Marshal(spans)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(loud), "secret") {
		t.Errorf("with content: got a secret in %s", loud)
	}
	task, tool := told(spans[0].Attributes), told(spans[1].Attributes)
	if got, want := task["gen_ai.output.messages"], `[{"role":"assistant","parts":[{"type":"text","content":"it is [redacted]"}]}]`; got != want {
		t.Errorf("answer: got %s, want %s", got, want)
	}
	if got := tool["gen_ai.tool.call.result"].(string); len(got) > 16<<10 || len(got) < 16<<10-2 || !strings.HasPrefix(long, got) {
		t.Errorf("result: got %d bytes, want 16 KiB at most, whole characters", len(got))
	}
	if got := spans[0].Message; got != redact.Mark {
		t.Errorf("message: got %q, want %q", got, redact.Mark)
	}
}

// What is redacted makes a text shorter: what is cut off behind the bound must not come into view.
func TestASecretThatIsCutIsNotExportedInPart(t *testing.T) {
	secret := "sk-" + strings.Repeat("s3cr3t", 85)
	redactor, err := redact.New([]string{"key-[0-9a-f]{600}"}, []string{secret})
	if err != nil {
		t.Fatal(err)
	}
	r := trace.Reader{Content: true, Redact: func() *redact.Redactor { return redactor }}
	in := all.Open(policy.Opening{})
	for name, one := range map[string]string{"a known secret": secret, "a pattern": "key-" + strings.Repeat("0123456789ab", 50)} {
		for shift := 0; shift < 700; shift += 23 {
			o := opened(in)
			o.Request.Content = strings.Repeat(" ", shift) + strings.Repeat(one+" ", 200)
			text, err := json.Marshal(r.Spans(story(o, core.Text{Text: o.Request.Content}, core.Done{})))
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), one[:10]) {
				t.Fatalf("%s, shifted by %d: got a part of it", name, shift)
			}
		}
	}
}

func TestATaskThatAKillCutOffIsAnErrorThatSaysSo(t *testing.T) {
	in := all.Open(policy.Opening{})
	events := slices.Collect(story(opened(in), core.Assigned{Agent: "a", Attempt: 1}, core.ToolCall{ID: "1", Name: "x"}, core.Failed{Fault: core.NewFault(core.CodeUnreachable, "the hub stopped")}))
	events[3].Epoch = 2
	spans := trace.Reader{}.Spans(slices.Values(events))
	if got := told(spans[0].Attributes); !spans[0].Failed || got["error.type"] != "unreachable" || got["dragoman.recovered"] != true || !spans[1].Failed {
		t.Errorf("got %+v, want failed, unreachable and recovered", spans)
	}
}

func TestATaskThatIsNotSampledOrLacksItsBeginningHasNoSpans(t *testing.T) {
	for name, events := range map[string]func(func(core.Event) bool){
		"no trace": story(opened(core.Trace{}), core.Done{}), "unsampled": story(opened(core.Trace{Parent: unsampled}), core.Done{}),
		"malformed": story(opened(core.Trace{Parent: "x"}), core.Done{}), "opened without a tracer": story(opened(core.Trace{Parent: sampled, Above: sampled}), core.Done{}), "no beginning": story(core.Text{Text: "x"}, core.Done{}), "nothing": story(),
	} {
		if got := (trace.Reader{}).Spans(events); len(got) > 0 {
			t.Errorf("%s: got %+v, want none", name, got)
		}
	}
}

func TestACallThatSteersIsLinkedToTheTask(t *testing.T) {
	in := all.Open(policy.Opening{})
	steers := func(parent string) core.Injected {
		return core.Injected{ID: "1", Content: "x", Trace: core.Trace{Parent: parent}}
	}
	spans := trace.Reader{}.Spans(story(opened(in), steers(sampled), steers(unsampled), steers(sampled), steers("malformed"), steers(""), core.Done{}))
	above := spanIn(t, core.Trace{Parent: sampled})
	if diff := cmp.Diff([]trace.Link{{Trace: above.Trace, ID: above.ID}}, spans[0].Links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	if spans[0].Parent != [8]byte{} {
		t.Errorf("got the parent %x, want none", spans[0].Parent)
	}
	if got := len(spans[0].Moments); got != 5 {
		t.Errorf("got %d moments, want one for each of 5 injections", got)
	}
}

func TestTheSpansOfATaskAreBounded(t *testing.T) {
	in := all.Open(policy.Opening{})
	bodies := []core.Body{opened(in)}
	for i := range 5000 {
		bodies = append(bodies, core.ToolCall{ID: "1", Name: strings.Repeat("x", 5000)}, core.ToolResult{ID: "1"}, core.Accepted{})
		steered := core.Span{Trace: [16]byte{1}, ID: [8]byte{7: 1, 6: byte(i), 5: byte(i >> 8)}}
		bodies = append(bodies, core.Injected{ID: "1", Content: "x", Trace: core.Trace{Parent: steered.String()}})
	}
	spans := trace.Reader{}.Spans(story(append(bodies, core.Done{})...))
	if len(spans) > 300 || len(spans[0].Moments) > 200 || len(spans[0].Links) > 200 || len(spans[1].Name) > 600 {
		t.Errorf("got %d spans, %d moments and a name of %d bytes, want bounds", len(spans), len(spans[0].Moments), len(spans[1].Name))
	}
	if got, want := told(spans[0].Attributes)["dragoman.omitted"], int64(5000-256+10_000-128+5000-128); got != want {
		t.Errorf("omitted: got %v, want %d", got, want)
	}
}

// BenchmarkSpans makes the spans of a short task.
func BenchmarkSpans(b *testing.B) {
	in := all.Open(policy.Opening{})
	events := slices.Collect(story(opened(in), core.Assigned{Agent: "a", Attempt: 1}, core.Accepted{}, core.Text{Text: "x"}, core.Text{Text: "y"}, core.Done{}))
	b.ReportAllocs()
	for b.Loop() {
		trace.Reader{}.Spans(slices.Values(events))
	}
}
