package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// far is a hub at the other end of a connection whose messages hold so many bytes of an event.
type far struct {
	most int
	told []core.Body
}

func (f *far) say(ctx context.Context, b core.Body, foreign *core.Foreign) error {
	if raw, _ := json.Marshal([]any{b, foreign}); f.most > 0 && len(raw) > f.most {
		return core.NewFault(core.CodeTooLarge, "%d bytes", len(raw))
	}
	f.told = append(f.told, b)
	return context.Cause(ctx)
}

func TestADialectWithoutDecisionsDeniesWhatNeedsOne(t *testing.T) {
	hub := &far{}
	turn := agent.NewRemote(agent.RemoteTask{Say: hub.say, Undecided: "nobody can be asked"})
	err := turn.Work(t.Context(), func(ctx context.Context, turn agent.Turn) error {
		if err := turn.Report(core.ApprovalRequested{ID: "c", Name: "write", Input: "{}"}, nil); err != nil {
			return err
		}
		b, err := turn.Next(ctx)
		if d, ok := b.(core.ApprovalDecided); !ok || d.ID != "c" || d.Approved || d.Reason != "nobody can be asked" {
			t.Errorf("got %#v, want the call denied", b)
		}
		return err
	})
	if want := []core.Body{core.ToolState{ID: "c", State: core.ToolDenied, Detail: "nobody can be asked"}}; err != nil || !reflect.DeepEqual(hub.told, want) {
		t.Errorf("the hub was told %#v, %v; want %#v", hub.told, err, want)
	}
}

func TestWhatNoMessageHoldsIsToldWithoutItsContent(t *testing.T) {
	hub := &far{most: 200}
	large := string(make([]byte, 300))
	turn := agent.NewRemote(agent.RemoteTask{Say: hub.say})
	err := turn.Work(t.Context(), func(ctx context.Context, turn agent.Turn) error {
		plan := core.ForeignFrame{Dialect: "editor", Name: "plan"}
		for _, b := range []core.Body{plan, core.ToolCall{ID: "c", Name: "read", Input: large}, core.ToolState{ID: "c", State: core.ToolRunning, Detail: large}, core.ToolResult{ID: "c", Output: large, IsError: true}} {
			var foreign *core.Foreign
			if b == plan {
				foreign = &core.Foreign{Dialect: "editor", JSON: quoted(large)}
			}
			if err := turn.Report(b, foreign); err != nil {
				t.Errorf("%s: got %v, want no error", b.Kind(), err)
			}
		}
		if err := turn.Report(core.ApprovalRequested{ID: "d", Name: "write", Input: large}, nil); err != nil {
			return err
		}
		if b, _ := turn.Next(ctx); b.(core.ApprovalDecided).Approved {
			t.Error("got a call approved that nobody has seen, want it denied")
		}
		return turn.Report(core.File{Name: "f", Data: []byte(large)}, nil)
	})
	if !errors.Is(err, &core.Fault{Code: core.CodeTooLarge}) {
		t.Errorf("a file: got %v, want too_large: the answer would not be whole", err)
	}
	want := []core.Body{
		core.ForeignFrame{Dialect: "editor", Name: "plan"},
		core.ToolCall{ID: "c", Name: "read", Input: `{"left_out_bytes":300}`}, core.ToolState{ID: "c", State: core.ToolRunning, Detail: `{"left_out_bytes":300}`},
		core.ToolResult{ID: "c", Output: `{"left_out_bytes":300}`, IsError: true}, core.ToolState{ID: "d", State: core.ToolDenied, Detail: "it is too large to be shown to anybody"},
	}
	if !reflect.DeepEqual(hub.told, want) {
		t.Errorf("the hub was told %#v, want %#v", hub.told, want)
	}
}

func quoted(text string) json.RawMessage { raw, _ := json.Marshal(text); return raw }

func TestAnAgentIsToldOfACancelAndHasAGrace(t *testing.T) {
	for name, end := range map[string]func(context.Context) (context.Context, func()){
		"a cancel": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithCancelCause(ctx)
			return ctx, func() { cancel(core.NewFault(core.CodeCancelled, "enough")) }
		},
		"the deadline": func(ctx context.Context) (context.Context, func()) {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			context.AfterFunc(ctx, cancel)
			return ctx, func() {}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			hub := &far{}
			ctx, cancel := end(t.Context())
			turn := agent.NewRemote(agent.RemoteTask{Say: hub.say})
			err := turn.Work(ctx, func(ctx context.Context, turn agent.Turn) error {
				cancel()
				b, err := turn.Next(ctx)
				if _, ok := b.(core.CancelRequested); !ok {
					t.Errorf("%s: got %#v and %v, want a cancel", name, b, err)
				}
				if err := turn.Report(core.Text{Text: "what was left"}, nil); err != nil {
					t.Errorf("%s: got %v, want what is left told", name, err)
				}
				<-ctx.Done()
				return context.Cause(ctx)
			})
			var why *core.Fault
			if !errors.As(err, &why) || len(hub.told) != 1 {
				t.Errorf("%s: got %v and %v told, want the turn given up for the cancel", name, err, hub.told)
			}
		})
	}
}
