package core_test

import (
	"errors"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestEveryKindHasANameThatReadsBack(t *testing.T) {
	seen := map[string]bool{}
	for i, k := range core.Kinds() {
		if int(k) != i+1 {
			t.Errorf("kind %s: got the number %d, want %d", k, k, i+1)
		}
		got, ok := core.ParseKind(k.String())
		if got != k || !ok {
			t.Errorf("%q: got %v and %v, want it to read back", k.String(), got, ok)
		}
		if seen[k.String()] {
			t.Errorf("%q names two kinds, want one", k.String())
		}
		seen[k.String()] = true
	}
	if got := len(core.Kinds()); got != int(core.KindCancelled) {
		t.Errorf("got %d kinds, want %d", got, core.KindCancelled)
	}
}

func TestWhatIsNoKindHasNoNameAndIsNotRead(t *testing.T) {
	for _, name := range []string{"", "kind(0)", "dance", "Text", " text", "kind(99)"} {
		if k, ok := core.ParseKind(name); ok || k != 0 {
			t.Errorf("%q: got %s and %v, want no kind", name, k, ok)
		}
	}
	for k, want := range map[core.Kind]string{0: "kind(0)", core.KindCancelled + 1: "kind(25)", 255: "kind(255)"} {
		if got := k.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if k.Ends() || k.Output() || k.ForAgent() {
			t.Errorf("%s: got true of something, want false of all", k)
		}
	}
}

func TestWhatHoldsOfEachKind(t *testing.T) {
	ends := []core.Kind{core.KindDone, core.KindFailed, core.KindCancelled}
	output := []core.Kind{
		core.KindThinking, core.KindText, core.KindToolCall, core.KindToolState, core.KindToolResult,
		core.KindApprovalRequested, core.KindQuestionAsked, core.KindFile, core.KindForeign,
	}
	forAgent := []core.Kind{core.KindAssigned, core.KindApprovalDecided, core.KindInjected, core.KindCancelRequested}
	for _, k := range core.Kinds() {
		for what, c := range map[string]struct {
			got  bool
			want []core.Kind
		}{
			"ends a task": {k.Ends(), ends}, "is output": {k.Output(), output}, "is for the agent": {k.ForAgent(), forAgent},
		} {
			if want := slices.Contains(c.want, k); c.got != want {
				t.Errorf("%s %s: got %v, want %v", k, what, c.got, want)
			}
		}
	}
}

func TestAnEventGoesToTheMethodOfItsKindAndNoOther(t *testing.T) {
	for _, k := range core.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				e := coretest.EventOf(k).Draw(t, "event")
				if got := e.Body.Kind(); got != k {
					t.Fatalf("got a body of kind %s, want %s", got, k)
				}
				refuses := errors.New("no more")
				s := &recordingSink{answers: refuses}
				if err := e.Deliver(s); err != refuses {
					t.Fatalf("got %v, want the error of the sink", err)
				}
				if len(s.got) != 1 || s.got[0] != k {
					t.Fatalf("got it at %v, want it at %s alone", s.got, k)
				}
			})
		})
	}
}

func TestAnAgentIsTheSinkOfWhatIsSaidToItAndOfTheEnds(t *testing.T) {
	for _, k := range core.Kinds() {
		t.Run(k.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				s := &recordingSink{}
				if err := coretest.EventOf(k).Draw(t, "event").DeliverToAgent(s); err != nil {
					t.Fatal(err)
				}
				var want []core.Kind
				if k.ForAgent() || k.Ends() {
					want = []core.Kind{k}
				}
				if !slices.Equal(s.got, want) {
					t.Fatalf("got it at %v, want it at %v", s.got, want)
				}
			})
		})
	}
}

func TestTheSizeOfAnEventIsAtLeastWhatItHolds(t *testing.T) {
	big := make([]byte, 10_000)
	long := string(big)
	request := core.Request{
		Content: long, Data: big, Context: big, Attachments: []core.File{{Name: long, Data: big}}, History: []core.Turn{{Text: long}},
		Notice: &core.Notice{Topic: long, Data: big}, Foreign: &core.Foreign{JSON: big, Wire: big},
	}
	for _, c := range []struct {
		body core.Body
		want int
	}{
		{core.Opened{Request: request}, 10 * len(big)},
		{core.Text{Text: long}, len(big)},
		{core.Thinking{Text: long}, len(big)},
		{core.ToolCall{ID: long, Name: long, Input: long}, 3 * len(big)},
		{core.ToolState{Detail: long}, len(big)},
		{core.ToolResult{Output: long}, len(big)},
		{core.ApprovalRequested{Input: long}, len(big)},
		{core.Injected{Content: long}, len(big)},
		{core.File{Data: big}, len(big)},
		{core.Done{Text: long, Data: big}, 2 * len(big)},
		{core.SessionLost{Reason: long}, len(big)},
		{core.Cancelled{Reason: long}, len(big)},
		{core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", long)}, len(big)},
		{core.Retrying{Fault: core.NewFault(core.CodeInternal, "%s", long)}, len(big)},
	} {
		if got := (core.Event{Body: c.body}).Size(); got < c.want {
			t.Errorf("%s: got %d bytes, want at least %d", c.body.Kind(), got, c.want)
		}
	}
	e := core.Event{Body: core.Text{}, Foreign: &core.Foreign{JSON: big, Wire: big}}
	if got, want := e.Size(), 2*len(big); got < want {
		t.Errorf("with foreign fields: got %d bytes, want at least %d", got, want)
	}
	m := core.Event{Body: core.Text{}, Merged: &core.Merged{Cuts: make([]int, len(big))}}
	if got, want := m.Size(), 8*len(big); got < want {
		t.Errorf("merged: got %d bytes, want at least %d", got, want)
	}
}

func TestEveryKindCostsSomething(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		if e := coretest.Event(t); e.Size() <= 0 {
			t.Fatalf("%s: got %d bytes, want some", e.Body.Kind(), e.Size())
		}
	})
}

// recordingSink notes the kinds of its methods that were called.
type recordingSink struct {
	got     []core.Kind
	answers error
}

func (s *recordingSink) note(k core.Kind) error {
	s.got = append(s.got, k)
	return s.answers
}

func (s *recordingSink) Opened(core.Event, core.Opened) error     { return s.note(core.KindOpened) }
func (s *recordingSink) Assigned(core.Event, core.Assigned) error { return s.note(core.KindAssigned) }
func (s *recordingSink) Accepted(core.Event, core.Accepted) error { return s.note(core.KindAccepted) }
func (s *recordingSink) Thinking(core.Event, core.Thinking) error { return s.note(core.KindThinking) }
func (s *recordingSink) Text(core.Event, core.Text) error         { return s.note(core.KindText) }
func (s *recordingSink) ToolCall(core.Event, core.ToolCall) error { return s.note(core.KindToolCall) }
func (s *recordingSink) ToolState(core.Event, core.ToolState) error {
	return s.note(core.KindToolState)
}
func (s *recordingSink) Injected(core.Event, core.Injected) error { return s.note(core.KindInjected) }
func (s *recordingSink) File(core.Event, core.File) error         { return s.note(core.KindFile) }
func (s *recordingSink) Usage(core.Event, core.Usage) error       { return s.note(core.KindUsage) }
func (s *recordingSink) QuestionAsked(core.Event, core.QuestionAsked) error {
	return s.note(core.KindQuestionAsked)
}
func (s *recordingSink) QuestionAnswered(core.Event, core.QuestionAnswered) error {
	return s.note(core.KindQuestionAnswered)
}
func (s *recordingSink) Retrying(core.Event, core.Retrying) error { return s.note(core.KindRetrying) }
func (s *recordingSink) Done(core.Event, core.Done) error         { return s.note(core.KindDone) }
func (s *recordingSink) Failed(core.Event, core.Failed) error     { return s.note(core.KindFailed) }
func (s *recordingSink) Cancelled(core.Event, core.Cancelled) error {
	return s.note(core.KindCancelled)
}

func (s *recordingSink) SessionStarted(core.Event, core.SessionStarted) error {
	return s.note(core.KindSessionStarted)
}

func (s *recordingSink) SessionLost(core.Event, core.SessionLost) error {
	return s.note(core.KindSessionLost)
}

func (s *recordingSink) ToolResult(core.Event, core.ToolResult) error {
	return s.note(core.KindToolResult)
}

func (s *recordingSink) ApprovalRequested(core.Event, core.ApprovalRequested) error {
	return s.note(core.KindApprovalRequested)
}

func (s *recordingSink) ApprovalDecided(core.Event, core.ApprovalDecided) error {
	return s.note(core.KindApprovalDecided)
}

func (s *recordingSink) InjectionAnswered(core.Event, core.InjectionAnswered) error {
	return s.note(core.KindInjectionAnswered)
}

func (s *recordingSink) CancelRequested(core.Event, core.CancelRequested) error {
	return s.note(core.KindCancelRequested)
}

func (s *recordingSink) ForeignFrame(core.Event, core.ForeignFrame) error {
	return s.note(core.KindForeign)
}
