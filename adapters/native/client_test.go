package native_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// asked is what came of an Ask.
type asked struct {
	answer core.Answer
	err    error
}

// askUntil asks an agent until ctx ends.
func (p *peer) askUntil(ctx context.Context, to string) <-chan asked {
	came := make(chan asked, 1)
	go func() {
		answer, err := p.Ask(ctx, ask(to, "?"), nil)
		came <- asked{answer, err}
	}()
	return came
}

// wantFault wants an error to be a Fault with the code, and not one around it.
func wantFault(t *testing.T, what string, err error, want core.Code) {
	t.Helper()
	if f, ok := err.(*core.Fault); !ok || f.Code != want { //nolint:errorlint // no other may stand around it
		t.Errorf("%s: got %T %v, want the Fault %s", what, err, err, want)
	}
}

func TestAnAskReturnsTheFaultThatEndedIt(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		_, err := asker.Ask(s.Context(), core.Request{}, nil)
		wantFault(t, "a request that the hub refuses", err, core.CodeInvalid)

		came := asker.askUntil(s.Context(), "agent")
		id := agent.take()[0].Task
		agent.report(id, core.Text{Text: "half"}, core.Failed{Fault: core.NewFault(core.CodeOverloaded, "enough")})
		got := <-came
		wantFault(t, "a task that failed", got.err, core.CodeOverloaded)
		if got.answer.Text != "half" {
			t.Errorf("got %q, want what the agent said before it failed", got.answer.Text)
		}

		agent.take()
		left := asker.askUntil(s.Context(), "agent")
		id = agent.take()[0].Task
		asker.Close()
		wantFault(t, "a connection that ended", (<-left).err, core.CodeUnreachable)
		agent.stop(id)
	})
}

func TestAnAskThatNobodyWaitsForIsCancelled(t *testing.T) {
	withHub(t, func(s *setup) {
		agent, asker := s.agent(able("agent")), s.peer("asker")
		ctx, stop := context.WithCancelCause(s.Context())
		came := asker.askUntil(ctx, "agent")
		id := agent.take()[0].Task
		enough := errors.New("enough")
		stop(enough)
		if got := <-came; !errors.Is(got.err, enough) {
			t.Errorf("got %v, want why it stopped waiting", got.err)
		}
		told := agent.take()
		if len(told) != 1 || told[0].Event.Body.Kind() != core.KindCancelRequested {
			t.Fatalf("got %v, want the agent told to stop", kinds(told))
		}
		if got := told[0].Event.Body.(core.CancelRequested).Reason; got != "the requester stopped waiting" {
			t.Errorf("got the reason %q, want that the requester stopped waiting", got)
		}
		agent.report(id, core.Cancelled{})
	})
}

// fakeHub is the hub's end of a client's connection, whose frames the test writes.
func fakeHub(t *testing.T, opts client.Options) (*client.Client, func(frame string), *coretest.End[[]byte, []byte]) {
	t.Helper()
	clientEnd, hubEnd := coretest.Pipe[[]byte, []byte](8)
	c := client.New(t.Context(), clientEnd, opts)
	t.Cleanup(c.Close)
	return c, func(frame string) {
		t.Helper()
		if err := hubEnd.Send(t.Context(), []byte(frame)); err != nil {
			t.Fatalf("%s: got %v, want the connection open", frame, err)
		}
	}, hubEnd
}

func TestNobodyWaitsForAConnectionThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _, hubEnd := fakeHub(t, client.Options{})
		enough := errors.New("enough")
		ctx, stop := context.WithCancelCause(t.Context())
		stop(enough)
		if _, err := c.Hello(ctx); !errors.Is(err, enough) {
			t.Errorf("hello: got %v, want why it stopped waiting", err)
		}
		waits := map[string]func() error{
			"hello": func() error { _, err := c.Hello(t.Context()); return err },
			"a call": func() error {
				_, err := c.Call(t.Context(), core.List{What: core.ListAgents}, wire.With{})
				return err
			},
			"a tool":     func() error { _, err := c.CallTool(t.Context(), "dig", nil); return err },
			"the tools":  func() error { _, err := c.Tools(t.Context()); return err },
			"a report":   func() error { return c.ReportConfirmed(t.Context(), "t", core.Done{}, nil) },
			"a question": func() error { _, err := c.AskPeople(t.Context(), "t", question.Question{Text: "?"}); return err },
			"an ask":     func() error { _, err := c.Ask(t.Context(), ask("agent", "?"), nil); return err },
		}
		ended := make(chan func())
		for what, wait := range waits {
			go func() {
				err := wait()
				ended <- func() { wantFault(t, what, err, core.CodeUnreachable) }
			}()
		}
		synctest.Wait()
		_ = hubEnd.Close(link.Reason{Cause: link.PeerGone})
		for range waits {
			(<-ended)()
		}
	})
}

func TestAClientLeavesAHubThatDoesNotSpeakTheDialect(t *testing.T) {
	for _, frame := range []string{
		`no JSON`, `{}`, `[]`, `{"hello":7}`, `{"error":7}`, `{"error":{"id":"1"}}`, `{"event":{"kind":"text","body":{"text":"x"}}}`,
		`{"event":{"task":"t","kind":"text","body":{"text":7}}}`, `{"event":{"task":"t","seq":"one","kind":"done","body":{}}}`,
		`{"event":{"task":"t","kind":"text","body":{"text":"x"},"merged":7}}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			c, send, _ := fakeHub(t, client.Options{})
			send(frame)
			<-c.Done()
			if got := c.Reason(); got.Cause != link.Protocol {
				t.Errorf("%s: got %s, want the protocol broken", frame, got.Error())
			}
		})
	}
}

func TestAClientIgnoresWhatItDoesNotWaitFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		c, send, hubEnd := fakeHub(t, client.Options{Told: func(kind string, v strictjson.Value) { told = append(told, kind+" "+string(v.Raw())) }})
		send(`{"later":{"news":1}}`)
		send(`{"result":{"id":"99"}}`)
		send(`{"error":{"task":"t","fault":{"code":"conflict","message":"late"}}}`)
		send(`{"event":{"task":"t","kind":"text","body":{"text":"x"}}}`)
		send(`{"hello":{"native":1,"hub":"first"}}`)
		send(`{"hello":{"native":1,"hub":"second"}}`)
		if hello, err := c.Hello(t.Context()); err != nil || hello.Hub != "first" {
			t.Errorf("got %+v and %v, want the first hello", hello, err)
		}
		tools := make(chan []wire.Tool, 1)
		go func() {
			all, err := c.Tools(t.Context())
			if err != nil {
				t.Error(err)
			}
			tools <- all
		}()
		if _, err := hubEnd.Receive(t.Context()); err != nil {
			t.Fatal(err)
		}
		send(`{"result":{"id":"1","tools":[{"name":"dig"}]}}`)
		send(`{"result":{"id":"1","tools":[]}}`)
		if got := <-tools; len(got) != 1 || got[0].Name != "dig" {
			t.Errorf("got %v, want the first answer", got)
		}
		want := []string{`later {"news":1}`, `error {"task":"t","fault":{"code":"conflict","message":"late"}}`}
		if synctest.Wait(); !slices.Equal(told, want) {
			t.Errorf("got %q, want %q", told, want)
		}
	})
}

func TestAClientThatWaitsForNoToolAnyMoreGoesOn(t *testing.T) {
	withHub(t, func(s *setup) {
		caller, pack := s.peer("caller"), s.peer("pack")
		pack.call(core.Provide{Pack: "p"}, wire.With{Tools: []wire.Tool{{Name: "dig"}}})
		ctx, stop := context.WithTimeout(s.Context(), time.Second)
		defer stop()
		if _, err := caller.CallTool(ctx, "dig", nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that nobody waits any more", err)
		}
		_, frame, _ := strings.Cut(pack.others()[0], " ")
		if err := pack.Answer(s.Context(), text(strictjson.ParseValid([]byte(frame)).Get("id")), nil, nil); err != nil {
			t.Fatal(err)
		}
		if len(toolNames(caller)) == 0 {
			t.Error("got no tools, want the connection to go on")
		}
	})
}
