package e2e

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
)

// behind starts two hubs: an agent that does what handle does joins the far one, and the near one has it in its settings, by A2A through a proxy.
func behind(t *testing.T, handle core.Handler) (farAsker, *proxy) {
	t.Helper()
	far := newTestHub(t, nil)
	far.startAgentWith(t, "coven", "kit", handle)
	p := newProxy(t, far.service.Addresses().HTTP)
	return askFar(t, "http://"+p.addr()+"/a2a/kit"), p
}

func TestAHubIsAnAgentOfAHub(t *testing.T) {
	t.Parallel()
	a, _ := behind(t, func(_ context.Context, r core.Request, say func(core.Body) error) error {
		for _, b := range []core.Body{
			core.Thinking{Text: "hm"}, core.ToolCall{ID: "t1", Name: "look", Input: `{"at":1}`}, core.ToolState{ID: "t1", State: core.ToolRunning},
			core.ToolResult{ID: "t1", Output: "seen"}, core.Text{Text: strings.ToUpper(r.Content)}, core.File{Name: "a.txt", MediaType: "text/plain", Data: []byte("abc")},
			core.Text{Text: "!"}, core.Usage{Input: 3, Output: 4},
		} {
			if err := say(b); err != nil {
				return err
			}
		}
		return nil
	})
	var got []string
	answer := a.ask("hello", "", func(_ core.TaskID, e core.Event) {
		switch b := e.Body.(type) {
		case core.Opened, core.Assigned, core.Accepted, core.SessionStarted:
		case core.File:
			got = append(got, "file "+b.Name)
		default:
			got = append(got, fmt.Sprintf("%s %v", b.Kind(), b))
		}
		if e.Foreign != nil && e.Body.Kind() != core.KindOpened {
			t.Logf("%s has %s", e.Body.Kind(), e.Foreign.JSON)
		}
	})
	want := []string{
		"thinking {hm}", `tool_call {t1 look {"at":1} }`, "tool_state {t1 running }", "tool_result {t1 seen false}", "text {HELLO}", "file a.txt", "text {!}", "usage {3 4 0 0 0  unknown}", "done { [] false 0}",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || answer.Text != "HELLO!" {
		t.Errorf("the near hub was told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAStreamBetweenHubsIsCutAndContinuedExactly(t *testing.T) {
	t.Parallel()
	const chunks = 300
	cut := make(chan struct{})
	a, p := behind(t, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
		for i := range chunks {
			if i%100 == 50 {
				<-cut
			}
			if err := say(core.Text{Text: strconv.Itoa(i % 7)}); err != nil {
				return err
			}
		}
		return nil
	})
	var want strings.Builder
	for i := range chunks {
		want.WriteString(strconv.Itoa(i % 7))
	}
	said := 0
	got := a.ask("count", "", func(_ core.TaskID, e core.Event) {
		if b, ok := e.Body.(core.Text); ok {
			if said += len(b.Text); said%100 == 50 {
				p.cut()
				cut <- struct{}{}
			}
		}
	})
	if got.End != core.KindDone || got.Text != want.String() {
		t.Errorf("got %s with %q (%v), want each chunk once: %q", got.End, got.Text, got.Fault, want.String())
	}
}

func TestAMessageBetweenHubsIsSentAgainWithoutDoingTheTaskTwice(t *testing.T) {
	t.Parallel()
	begun, cut := make(chan struct{}, 2), make(chan struct{})
	a, p := behind(t, func(_ context.Context, _ core.Request, say func(core.Body) error) error {
		begun <- struct{}{}
		<-cut
		return say(core.Text{Text: "once"})
	})
	go func() {
		<-begun // the answer may not have begun by now
		p.cut()
		close(cut)
	}()
	if got := a.ask("x", "", nil); got.End != core.KindDone || got.Text != "once" || len(begun) > 0 {
		t.Errorf("got %s with %q (%v), and %d further tasks, want one", got.End, got.Text, got.Fault, len(begun))
	}
}

func TestApprovalsAndContextCrossHubs(t *testing.T) {
	t.Parallel()
	far := newTestHub(t, nil)
	far.startAgent(t, coven.Name, "kit", 1)
	a := askFar(t, far.url()+"/a2a/kit")
	asked := core.ApprovalRequested{}
	got := a.ask("leave k1", "", func(id core.TaskID, e core.Event) {
		if b, ok := e.Body.(core.ApprovalRequested); ok {
			asked = b
			if err := a.Decide(t.Context(), id, core.ApprovalDecided{ID: b.ID, Approved: true}); err != nil {
				t.Error(err)
			}
		}
	})
	if got.End != core.KindDone || got.Text != leaveGiven || asked.Name != "remove" {
		t.Errorf("got %s with %q (%v) after %+v, want it done with leave", got.End, got.Text, got.Fault, asked)
	}
	answered := core.InjectionAnswered{}
	said := ""
	got = a.ask("listen k2", "", func(id core.TaskID, e core.Event) {
		switch b := e.Body.(type) {
		case core.Text:
			if said += b.Text; said == firstHalf {
				if err := a.Inject(t.Context(), id, core.Injected{ID: "i1", Content: "listen k2"}); err != nil {
					t.Error(err)
				}
			}
		case core.InjectionAnswered:
			answered = b
		}
	})
	if got.End != core.KindDone || got.Text != firstHalf+secondHalf || !answered.Accepted {
		t.Errorf("got %s with %q (%v) after %+v, want it done with the context", got.End, got.Text, got.Fault, answered)
	}
}

func TestACancelCrossesHubs(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	a, _ := behind(t, func(ctx context.Context, _ core.Request, say func(core.Body) error) error {
		defer close(ended)
		if err := say(core.Text{Text: "one"}); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	got := a.ask("wait", "", func(id core.TaskID, e core.Event) {
		if e.Body.Kind() == core.KindText {
			if err := a.Cancel(id, "enough"); err != nil {
				t.Error(err)
			}
		}
	})
	if got.End != core.KindCancelled || got.Text != "one" {
		t.Errorf("got %s with %q (%v), want it cancelled", got.End, got.Text, got.Fault)
	}
	<-ended
}
