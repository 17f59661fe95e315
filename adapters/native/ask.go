package native

import (
	"context"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// maxAsking is how many questions of a connection may wait for people.
const maxAsking = 16

// askPeople puts a question of the peer to people. The answer follows when they have said what
// they think; until then a goroutine waits.
func (s *session) askPeople(ctx context.Context, a wire.Ask) error {
	var q question.Question
	if err := a.Question.DecodeKnown(&q); err != nil {
		return s.refuse(ctx, wire.Refusal{ID: a.ID, Fault: core.NewFault(core.CodeInvalid, "ask: question: %s", err)})
	}
	s.mu.Lock()
	full := s.asking >= maxAsking
	if !full {
		s.asking++
	}
	s.mu.Unlock()
	if full {
		return s.refuse(ctx, wire.Refusal{ID: a.ID, Fault: core.NewFault(core.CodeOverloaded, "%d questions wait for people already: wait for the answer to one", maxAsking)})
	}
	s.goroutines.Go(func() {
		outcome, err := s.asked(a, q)
		s.mu.Lock()
		s.asking--
		s.mu.Unlock()
		if s.ctx.Err() != nil {
			return
		}
		// An error means that the connection ends, which its reader notices.
		_ = s.reply(s.ctx, a.ID, struct {
			done
			Outcome question.Outcome `json:"outcome"`
		}{done{a.ID}, outcome}, err)
	})
	return nil
}

// asked waits for what people say.
func (s *session) asked(a wire.Ask, q question.Question) (question.Outcome, error) {
	if a.Execution != "" {
		return s.asks.AskCaller(s.ctx, a.Execution, q)
	}
	return s.agent.AskPeople(s.ctx, a.Task, q)
}
