package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/editor/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/question"
)

// slow is a turn whose host takes an event only when the test lets it.
type slow struct {
	id    core.TaskID
	take  chan struct{} // nil takes all at once
	text  strings.Builder
	end   core.Body
	fails error // what Report returns
}

func (s *slow) Task() core.TaskID { return s.id }
func (s *slow) Request() core.Request {
	return core.Request{Content: string(s.id), Thread: core.ThreadID(s.id)}
}
func (s *slow) Delivered() {}
func (s *slow) Hops() int  { return 0 }

func (s *slow) Trace() core.Trace { return core.Trace{} }

func (s *slow) Report(body core.Body, _ *core.Foreign) error {
	if s.take != nil {
		<-s.take
	}
	switch b := body.(type) {
	case core.Text:
		s.text.WriteString(b.Text)
	case core.Done, core.Failed, core.Cancelled:
		s.end = b
	}
	return s.fails
}

func (s *slow) Next(ctx context.Context) (core.Body, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

func (s *slow) Ask(context.Context, question.Question) (question.Outcome, error) {
	return question.Outcome{}, errors.New("nobody is there")
}

func (s *slow) CallTool(context.Context, string, json.RawMessage) (json.RawMessage, error) {
	return nil, errors.New("there are no tools")
}

// bare runs an agent without a hub.
func bare(t *testing.T, test func(t *testing.T, a *client.Agent, p *peer)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		peers, ready, ran := make(chan *peer, 1), make(chan struct{}), make(chan error, 1)
		a := client.New(client.Options{Dir: "/w", Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) {
			ours, theirs := coretest.Pipe[[]byte, []byte](0)
			peers <- &peer{T: t, end: theirs}
			return ours, nil
		}})
		ctx, stop := context.WithCancel(t.Context())
		go func() { ran <- a.Run(ctx, func(agent.Profile) { close(ready) }) }()
		p := <-peers
		p.hello(`{}`)
		<-ready
		test(t, a, p)
		stop()
		<-ran
	})
}

// A slow hub slows the agent down: what waits is bounded, and nothing is lost.
func TestASlowHubSlowsTheAgentAndLosesNothing(t *testing.T) {
	bare(t, func(t *testing.T, a *client.Agent, p *peer) {
		turn := &slow{id: "t1", take: make(chan struct{})}
		worked := make(chan error, 1)
		go func() { worked <- a.Work(t.Context(), turn) }()
		p.begins("s1")
		turn.take <- struct{}{} // session_started
		prompt := p.wants("session/prompt")

		const chunks = 10_000
		piece := strings.Repeat("x", 1000)
		sent := 0
		said := make(chan struct{})
		go func() {
			defer close(said)
			for ; sent < chunks; sent++ {
				p.text("s1", piece)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
		}()
		synctest.Wait()
		if sent >= chunks || sent > 2000 {
			t.Errorf("the agent got rid of %d chunks of 1 KB with a hub that takes none, want about 1 MiB of them", sent)
		}
		close(turn.take)
		<-said
		if err := <-worked; err != nil {
			t.Errorf("Work returned %v, want nil", err)
		}
		if n := turn.text.Len(); n != chunks*len(piece) {
			t.Errorf("got %d bytes, want %d", n, chunks*len(piece))
		}
		if _, done := turn.end.(core.Done); !done {
			t.Errorf("got the end %v, want done", turn.end)
		}
	})
}

// A turn that nobody waits for any more lets the reader go on.
func TestAnAgentThatCancelsItsRequestAgainAndAgainIsSlowedToo(t *testing.T) {
	bare(t, func(t *testing.T, a *client.Agent, p *peer) {
		turn := &slow{id: "t1", take: make(chan struct{})}
		worked := make(chan error, 1)
		go func() { worked <- a.Work(t.Context(), turn) }()
		p.begins("s1")
		turn.take <- struct{}{} // session_started
		prompt := p.wants("session/prompt")
		p.says(`{"jsonrpc":"2.0","id":5,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"t","title":"x"},"options":[{"optionId":"a","name":"A","kind":"allow_once"}]}}`)

		const cancels = 10_000
		sent := 0
		said := make(chan struct{})
		go func() {
			defer close(said)
			for ; sent < cancels; sent++ {
				p.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
			}
			p.replies(prompt, `{"stopReason":"end_turn"}`)
		}()
		synctest.Wait()
		if sent > cancels/2 {
			t.Errorf("the agent got rid of %d cancels with a hub that takes nothing, want about 1 MiB of them", sent)
		}
		close(turn.take)
		p.answers("5")
		<-said
		if err := <-worked; err != nil {
			t.Errorf("Work returned %v, want nil", err)
		}
	})
}

func TestATurnThatEndsWithAFullQueueLetsTheOthersGoOn(t *testing.T) {
	bare(t, func(t *testing.T, a *client.Agent, p *peer) {
		ctx, leave := context.WithCancel(t.Context())
		stuck, other := &slow{id: "t1", take: make(chan struct{})}, &slow{id: "t2"}
		worked := make(chan error, 2)
		go func() { worked <- a.Work(ctx, stuck) }()
		p.begins("s1")
		stuck.take <- struct{}{}
		p.wants("session/prompt")
		go func() { worked <- a.Work(t.Context(), other) }()
		p.begins("s2")
		prompt := p.wants("session/prompt")

		go func() {
			for range 3000 {
				p.text("s1", strings.Repeat("x", 1000))
			}
			p.text("s2", "hello")
			p.replies(prompt, `{"stopReason":"end_turn"}`)
		}()
		synctest.Wait()
		leave()
		close(stuck.take)
		p.wants("session/cancel")
		for range 2 {
			if err := <-worked; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("Work returned %v", err)
			}
		}
		if got := other.text.String(); got != "hello" {
			t.Errorf("the other turn got %q, want hello", got)
		}
	})
}

// A hub that refuses an event has ended the task: the agent is told to stop.
func TestAnAgentIsStoppedOnceTheHubTakesNothingMore(t *testing.T) {
	bare(t, func(t *testing.T, a *client.Agent, p *peer) {
		turn := &slow{id: "t1"}
		worked := make(chan error, 1)
		go func() { worked <- a.Work(t.Context(), turn) }()
		p.begins("s1")
		prompt := p.wants("session/prompt")
		turn.fails = core.NewFault(core.CodeConflict, "task t1 has ended")
		p.text("s1", "more")
		p.wants("session/cancel")
		p.text("s1", "and more")
		p.replies(prompt, `{"stopReason":"cancelled"}`)
		if err := <-worked; !errors.Is(err, &core.Fault{Code: core.CodeConflict}) {
			t.Errorf("Work returned %v, want what the hub said", err)
		}
	})
}

func TestAnAgentThatIsNotRunningIsUnreachable(t *testing.T) {
	a := client.New(client.Options{Dir: "/w"})
	if err := a.Work(t.Context(), &slow{id: "t1"}); !errors.Is(err, &core.Fault{Code: core.CodeUnreachable}) {
		t.Errorf("got %v, want it unreachable", err)
	}
}

func (*slow) From() core.Principal { return core.Principal{} }
