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
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// account is the content of a run, assembled from the hub's events or from the frames.
type account struct {
	Pieces    []piece // text, thinking and calls in order; consecutive pieces of a kind joined
	Results   []toolEnd
	States    []core.ToolState
	Usage     core.Usage // thinking is part of Output
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

func (a *account) add(kind, text string) {
	if n := len(a.Pieces); n > 0 && a.Pieces[n-1].Kind == kind && kind != "toolCall" {
		a.Pieces[n-1].Text += text
	} else if text != "" {
		a.Pieces = append(a.Pieces, piece{Kind: kind, Text: text})
	}
}

// accountOf assembles the account of the events of a task.
func accountOf(events []core.Event) account {
	var a account
	var waiting []core.Injected
	hasText := false
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Text:
			a.add("text", b.Text)
			hasText = true
		case core.Thinking:
			a.add("thinking", b.Text)
		case core.ToolCall:
			a.Pieces = append(a.Pieces, piece{Kind: "toolCall", ID: b.ID, Name: b.Name, Text: b.Input, Arguments: argumentsOf(b.Input)})
		case core.ToolState:
			if b.State != core.ToolPending {
				a.States = append(a.States, b)
			}
		case core.ToolResult:
			a.Results = append(a.Results, toolEnd{b.ID, b.Output, b.IsError})
		case core.Usage:
			a.Usage = a.Usage.Add(core.Usage{Input: b.Input, Output: b.Output + b.Thinking, CacheRead: b.CacheRead, CacheWrite: b.CacheWrite})
		case core.ApprovalRequested:
			a.Approvals = append(a.Approvals, approval{render.RequestID(testTask().ID, e), "Allow " + visible.Line(b.Name) + "?", visible.JSON(b.Input)})
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
			if !hasText {
				a.add("text", b.Text)
			}
			a.add("text", string(b.Data))
		case core.Failed:
			a.Stop, a.Problem = render.StopError, b.Fault.Message
		case core.Cancelled:
			a.Stop, a.Problem = render.StopAborted, "Request was aborted: "+b.Reason
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

// argumentsOf returns the input of a tool as pi clients get it: an object. Input that is
// not strict JSON is wrapped as a string.
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
	return string(strictjson.Encode(v))
}

// sorted returns the account grouped by kind, without the deltas of calls. A message that
// often alternates between kinds gets no new blocks and no updates of calls, so only the
// order within a kind is kept.
func (a account) sorted() account {
	var s account
	for _, kind := range []string{"text", "thinking"} {
		var b strings.Builder
		for _, p := range a.Pieces {
			if p.Kind == kind {
				b.WriteString(p.Text)
			}
		}
		s.add(kind, b.String())
	}
	for _, p := range a.Pieces {
		if p.Kind == "toolCall" {
			p.Text = ""
			s.Pieces = append(s.Pieces, p)
		}
	}
	a.Pieces = s.Pieces
	return a
}

// drawEvents draws the events of a task: up to the given number in any order, and an end. Ids
// of tools and injections mostly match.
func drawEvents(t *rapid.T, most int) []core.Event {
	var bodies []core.Body
	draw := func(k core.Kind) core.Body { return coretest.Body(k).Draw(t, k.String()) }
	for i := range rapid.IntRange(0, 2).Draw(t, "retries") { // before any other event
		b := draw(core.KindRetrying).(core.Retrying)
		b.Attempt = i + 1
		bodies = append(bodies, b)
	}
	var calls, injections []string
	oneOf := func(all []string) string {
		return rapid.SampledFrom(append([]string{"unknown"}, all...)).Draw(t, "id")
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
			v.ID = oneOf(calls)
			b = v
		case core.ToolResult:
			v.ID = oneOf(calls)
			b = v
		case core.Injected:
			v.ID = fmt.Sprintf("%s%d", v.ID, i)
			injections, b = append(injections, v.ID), v
		case core.InjectionAnswered:
			v.ID = oneOf(injections)
			b = v
		}
		bodies = append(bodies, b)
	}
	end := rapid.SampledFrom([]core.Kind{core.KindDone, core.KindFailed, core.KindCancelled}).Draw(t, "end")
	return numbered(append(bodies, draw(end))...)
}

func TestFramesRoundTripTheEvents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := rapid.Bool().Draw(t, "long")
		events := drawEvents(t, map[bool]int{false: 15, true: 80}[long])
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
				t.Errorf("got %d retries without an end, want none", r.retry)
			}
			if r.tr.Deltas.String() != text || r.tr.Snapshots != text || r.tr.StopReason != want.Stop || r.tr.ErrorMessage != want.Problem {
				t.Errorf("transcript: got %q by deltas, %q by snapshots, stop %q %q, want %q twice and %q %q",
					r.tr.Deltas.String(), r.tr.Snapshots, r.tr.StopReason, r.tr.ErrorMessage, text, want.Stop, want.Problem)
			}
		}
	})
}

// text returns all text of the run.
func (a account) text() string {
	var b strings.Builder
	for _, p := range a.Pieces {
		if p.Kind == "text" {
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
