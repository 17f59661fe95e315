package core_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

func fold(bodies ...core.Body) core.Answer {
	var events []core.Event
	for i, b := range bodies {
		events = append(events, core.Event{Seq: uint64(i + 1), Epoch: 1, Body: b})
	}
	return core.Fold(events)
}

func TestATaskIsPutTogetherIntoOneAnswer(t *testing.T) {
	broke := core.NewFault(core.CodeInternal, "broke")
	for name, c := range map[string]struct {
		bodies []core.Body
		want   core.Answer
	}{
		"nothing yet": {nil, core.Answer{}},
		"a task that runs": {
			[]core.Body{core.Opened{}, core.Assigned{Agent: "ben"}, core.Text{Text: "so "}, core.Thinking{Text: "hm"}, core.Text{Text: "far"}},
			core.Answer{Text: "so far", Agent: "ben"},
		},
		"pieces outrank the whole": {
			[]core.Body{core.Text{Text: "piece"}, core.Done{Text: "the whole"}},
			core.Answer{Text: "piece", End: core.KindDone},
		},
		"the whole where there were no pieces": {
			[]core.Body{core.Done{Text: "the whole", Data: json.RawMessage(`1`), Truncated: true, TokensUsed: 9}},
			core.Answer{Text: "the whole", Data: json.RawMessage(`1`), Truncated: true, TokensUsed: 9, End: core.KindDone},
		},
		"files in order": {
			[]core.Body{core.File{Name: "a"}, core.Text{Text: "and"}, core.File{Name: "b"}, core.Done{}},
			core.Answer{Text: "and", Files: []core.File{{Name: "a"}, {Name: "b"}}, End: core.KindDone},
		},
		"usage adds up and stands for the tokens used": {
			[]core.Body{core.Usage{Input: 1, Output: 2, CacheRead: 10}, core.Usage{Input: 1, Thinking: 3, CacheWrite: 5}, core.Done{}},
			core.Answer{Usage: core.Usage{Input: 2, Output: 2, CacheRead: 10, CacheWrite: 5, Thinking: 3}, TokensUsed: 7, End: core.KindDone},
		},
		"what the agent says it used outranks usage": {
			[]core.Body{core.Usage{Input: 1}, core.Done{TokensUsed: 50}},
			core.Answer{Usage: core.Usage{Input: 1}, TokensUsed: 50, End: core.KindDone},
		},
		"a failure keeps what was said": {
			[]core.Body{core.Text{Text: "half an ans"}, core.Failed{Fault: broke}},
			core.Answer{Text: "half an ans", End: core.KindFailed, Fault: broke},
		},
		"a cancelled task says why": {
			[]core.Body{core.Cancelled{Reason: "changed my mind"}},
			core.Answer{End: core.KindCancelled, Fault: core.NewFault(core.CodeCancelled, "changed my mind")},
		},
		"a cancelled task without a reason": {
			[]core.Body{core.Cancelled{}},
			core.Answer{End: core.KindCancelled, Fault: core.NewFault(core.CodeCancelled, "cancelled")},
		},
		"a reason with a percent sign": {
			[]core.Body{core.Cancelled{Reason: "100%d sure"}},
			core.Answer{End: core.KindCancelled, Fault: core.NewFault(core.CodeCancelled, "%s", "100%d sure")},
		},
		"the agent that answered is the last": {
			[]core.Body{core.Assigned{Agent: "ben", Attempt: 1}, core.Retrying{Agent: "ben", Fault: broke}, core.Assigned{Agent: "cem", Attempt: 2}, core.Done{}},
			core.Answer{Agent: "cem", End: core.KindDone},
		},
	} {
		if d := cmp.Diff(c.want, fold(c.bodies...), coretest.Compare); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestMergingChangesNothingOfAnAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sent := pieces(t)
		if d := cmp.Diff(core.Fold(sent), core.Fold(mergeSome(t, sent)), coretest.Compare); d != "" {
			t.Fatalf("merged (-want +got):\n%s", d)
		}
	})
}

func TestTheTotalOfTokensLeavesTheCacheOut(t *testing.T) {
	u := core.Usage{Input: 1, Output: 2, CacheRead: 100, CacheWrite: 200, Thinking: 4}
	if got := u.Total(); got != 7 {
		t.Errorf("got %d, want 7", got)
	}
}
