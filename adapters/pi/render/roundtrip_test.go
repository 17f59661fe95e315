package render_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// account is what a run comes to, whether it is put together from the hub's events
// or from the frames that tell them.
type account struct {
	Said      []piece // text, thinking and calls, in order, neighbours of a kind put together
	Results   []toolEnd
	States    []core.ToolState
	Usage     core.Usage // thinking stands in Output
	Injected  []string
	Approvals []approval
	Retries   []retry
	Stop      string
	Problem   string
}

type piece struct{ Kind, Text, ID, Name, Arguments string }

type toolEnd struct {
	ID, Output string
	IsError    bool
}

type approval struct{ RequestID, Title, Input string }

type retry struct {
	Attempt int
	Problem string
}

func (a *account) say(kind, text string) {
	if n := len(a.Said); n > 0 && a.Said[n-1].Kind == kind && kind != "toolCall" {
		a.Said[n-1].Text += text
	} else if text != "" {
		a.Said = append(a.Said, piece{Kind: kind, Text: text})
	}
}

// accountOf puts the events of a task together by what they mean.
func accountOf(events []core.Event) account {
	var a account
	var waiting []core.Injected
	spoke := false
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Text:
			a.say("text", b.Text)
			spoke = true
		case core.Thinking:
			a.say("thinking", b.Text)
		case core.ToolCall:
			a.Said = append(a.Said, piece{Kind: "toolCall", ID: b.ID, Name: b.Name, Text: b.Input, Arguments: argumentsOf(b.Input)})
		case core.ToolState:
			if b.State != core.ToolPending {
				a.States = append(a.States, b)
			}
		case core.ToolResult:
			a.Results = append(a.Results, toolEnd{b.ID, b.Output, b.IsError})
		case core.Usage:
			a.Usage = a.Usage.Add(core.Usage{Input: b.Input, Output: b.Output + b.Thinking, CacheRead: b.CacheRead, CacheWrite: b.CacheWrite})
		case core.ApprovalRequested:
			a.Approvals = append(a.Approvals, approval{render.RequestID(testTask().ID, e.Seq), "Allow " + b.Name + "?", b.Input})
		case core.Injected:
			waiting = append(waiting, b)
		case core.InjectionAnswered:
			for i, in := range waiting {
				if in.ID == b.ID {
					waiting = append(waiting[:i:i], waiting[i+1:]...)
					if b.Accepted {
						a.Injected = append(a.Injected, in.Content)
					}
					break
				}
			}
		case core.Retrying:
			a.Retries = append(a.Retries, retry{b.Attempt, b.Fault.Message})
		case core.Done:
			if a.Stop = render.StopDone; b.Truncated {
				a.Stop = render.StopLength
			}
			if !spoke {
				a.say("text", b.Text)
			}
			a.say("text", string(b.Data))
		case core.Failed:
			a.Stop, a.Problem = render.StopError, b.Fault.Message
		case core.Cancelled:
			a.Stop, a.Problem = render.StopAborted, strings.TrimSuffix("Request was aborted: "+b.Reason, ": ")
			if b.Reason == "" {
				a.Problem = "Request was aborted."
			}
		}
	}
	for _, in := range waiting { // never answered
		a.Injected = append(a.Injected, in.Content)
	}
	return a
}

// argumentsOf is the input of a tool as pi's clients know it: an object. What readers of
// session files would not take for JSON is a text.
func argumentsOf(input string) string {
	var v any
	strict := strictjson.Check([]byte(input), strictjson.Limits{Bytes: len(input), Depth: conversation.ArgumentsDepth}) == nil
	switch err := json.Unmarshal([]byte(input), &v); {
	case strings.TrimSpace(input) == "":
		return "{}"
	case err != nil || !strict:
		v = map[string]any{"input": input}
	default:
		if _, ok := v.(map[string]any); !ok {
			v = map[string]any{"input": v}
		}
	}
	return string(wire.Encode(v))
}

// sorted is the account of a message that changed between text, thinking and calls so
// often that new blocks, and the steps of a call, are not worth their bytes: each
// kind is whole and in order.
func (a account) sorted() account {
	var s account
	for _, kind := range []string{"text", "thinking"} {
		var b strings.Builder
		for _, p := range a.Said {
			if p.Kind == kind {
				b.WriteString(p.Text)
			}
		}
		s.say(kind, b.String())
	}
	for _, p := range a.Said {
		if p.Kind == "toolCall" {
			p.Text = ""
			s.Said = append(s.Said, p)
		}
	}
	a.Said = s.Said
	return a
}

// happenings draws up to so many things that an agent may say in a task, in any
// order; ids of tools and injections mostly belong together.
func happenings(t *rapid.T, most int) []core.Event {
	var bodies []core.Body
	draw := func(k core.Kind) core.Body { return coretest.Body(k).Draw(t, k.String()) }
	for i := range rapid.IntRange(0, 2).Draw(t, "retries") { // nothing had been said
		b := draw(core.KindRetrying).(core.Retrying)
		b.Attempt = i + 1
		bodies = append(bodies, b)
	}
	var calls, injections []string
	among := func(all []string) string {
		return rapid.SampledFrom(append([]string{"nobody's"}, all...)).Draw(t, "id")
	}
	kinds := []core.Kind{
		core.KindText, core.KindText, core.KindThinking, core.KindToolCall, core.KindToolState, core.KindToolResult,
		core.KindUsage, core.KindApprovalRequested, core.KindInjected, core.KindInjectionAnswered,
	}
	for i := range rapid.IntRange(0, most).Draw(t, "length") {
		k := rapid.SampledFrom(kinds).Draw(t, "kind")
		b := draw(k)
		switch v := b.(type) {
		case core.Text:
			if v.Text == "" { // the hub drops it
				continue
			}
		case core.ToolCall:
			v.ID = fmt.Sprintf("%s%d", v.ID, i)
			if rapid.Bool().Draw(t, "input is JSON") {
				v.Input = string(coretest.JSON().Draw(t, "input"))
			}
			calls, b = append(calls, v.ID), v
		case core.ToolState:
			v.ID = among(calls)
			b = v
		case core.ToolResult:
			v.ID = among(calls)
			b = v
		case core.Injected:
			v.ID = fmt.Sprintf("%s%d", v.ID, i)
			injections, b = append(injections, v.ID), v
		case core.InjectionAnswered:
			v.ID = among(injections)
			b = v
		}
		bodies = append(bodies, b)
	}
	end := rapid.SampledFrom([]core.Kind{core.KindDone, core.KindFailed, core.KindCancelled}).Draw(t, "end")
	return numbered(append(bodies, draw(end))...)
}

func TestEventsReadBackFromTheirFramesAreTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := rapid.Bool().Draw(t, "long")
		events := happenings(t, map[bool]int{false: 15, true: 80}[long])
		want := accountOf(events)
		text := want.text()
		if long {
			want = want.sorted()
		}
		batches := rapid.SliceOfN(rapid.Bool(), len(events), len(events)).Draw(t, "batches")
		for _, how := range []render.Snapshots{render.SnapshotsAll, render.SnapshotsNone} {
			v, r := newView(how), &reader{t: t, how: how}
			for i, e := range events {
				_ = e.Deliver(v)
				if batches[i] {
					for _, f := range v.take() {
						r.read(f)
					}
				}
			}
			for _, f := range append(v.take(), testTask().Envelope.AgentEnd(v.TakeMessages())) {
				r.read(f)
			}
			got := r.account
			if long {
				got = got.sorted()
			}
			// Calls without a result get one at the end.
			if n := len(want.Results); len(got.Results) >= n {
				got.Results = got.Results[:n:n]
			}
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Fatalf("%v: read back (-want +got):\n%s", how, diff)
			}
			if r.retry != 0 {
				t.Errorf("%d retries did not end", r.retry)
			}
			if r.tr.Deltas.String() != text || r.tr.Snapshots != text || r.tr.StopReason != want.Stop || r.tr.ErrorMessage != want.Problem {
				t.Errorf("transcript: got %q by deltas, %q by snapshots, stop %q %q, want %q twice and %q %q",
					r.tr.Deltas.String(), r.tr.Snapshots, r.tr.StopReason, r.tr.ErrorMessage, text, want.Stop, want.Problem)
			}
		}
	})
}

// text is all text of the run.
func (a account) text() string {
	var b strings.Builder
	for _, p := range a.Said {
		if p.Kind == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
