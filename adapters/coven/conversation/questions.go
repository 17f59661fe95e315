package conversation

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/visible"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// handleSession sends what the session of the reader gets, until its link closes or the
// hub stops: questions, who else answered them, and the events of earlier turns. It does
// not report that a question timed out: the client knows the timeout.
func (r *reader) handleSession(ctx context.Context) {
	ctx = r.frames.Telling(ctx, "", false, 0) // not what streamTasks tells meanwhile
	for {
		b, err := r.session.Next(ctx)
		if err != nil {
			return
		}
		q := b.Question
		switch {
		case b.Gap != nil:
			r.service.count("gap")
			err = r.send(ctx, gapEvent(r.key, b.Task))
		case b.Task != nil:
			err = r.sendEarlier(ctx, b.Tag.(*earlierTurn), b.Events)
		case q == nil:
			continue
		case q.Outcome == nil:
			err = r.send(ctx, userQuestion(r.key, q.Question))
		case q.Outcome.By.ID != "" && q.Outcome.By != r.principal:
			err = r.send(ctx, questionAnswered(r.key, q))
		}
		if err != nil {
			return // the link is closed
		}
	}
}

// watchQuestions watches the questions of the conversation and of the agent that answers
// in it. Where the hub has no room for that, whoever asks is told that nobody is there.
func (r *reader) watchQuestions(agent core.AgentID) {
	if agent == "" {
		agent = core.AgentID(r.key) // existing clients name conversations after the agent
	}
	if agent != r.agent {
		r.agent = agent
		_ = r.session.WatchQuestions(question.View{Thread: core.ThreadID(r.key), Agent: agent, For: r.principal})
	}
}

func userQuestion(key string, q question.Question) *pb.ClientStreamEvent {
	m := &pb.UserQuestionRequest{
		AgentId: wire.ValidUTF8(string(q.Agent)), QuestionId: q.ID, Question: visible.Text(q.Text), MultiSelect: q.Several,
		TimeoutSeconds: int32(q.Until.Sub(q.Since) / time.Second),
	}
	if q.Header != "" {
		header := visible.Line(q.Header)
		m.Header = &header
	}
	for _, o := range q.Options {
		option := &pb.QuestionOption{Label: o.Label}
		if o.Description != "" {
			option.Description = &o.Description
		}
		m.Options = append(m.Options, option)
	}
	return &pb.ClientStreamEvent{
		ConversationKey: key, Timestamp: timestamp(time.Now()), Payload: &pb.ClientStreamEvent_UserQuestion{UserQuestion: m},
	}
}

// questionAnswered reports that somebody else has answered a question. Coven has no message
// for it.
func questionAnswered(key string, q *question.Update) *pb.ClientStreamEvent {
	text := wire.ValidUTF8(q.Outcome.By.ID + " answered: " + q.Outcome.String())
	return hubEvent(key, &pb.Event{Id: q.Question.ID, Type: "question_answered", Text: &text})
}

// AnswerQuestion implements the service. The first answer counts.
func (s *Service) AnswerQuestion(ctx context.Context, r *pb.AnswerQuestionRequest) (*pb.AnswerQuestionResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetAgentId() == "":
		return nil, invalidArgument("agent_id required")
	case r.GetQuestionId() == "":
		return nil, invalidArgument("question_id required")
	}
	refuse := func(text string) (*pb.AnswerQuestionResponse, error) {
		return &pb.AnswerQuestionResponse{Error: &text}, nil
	}
	for _, q := range s.hub.Questions(p) {
		if q.ID == r.GetQuestionId() && wire.ValidUTF8(string(q.Agent)) != r.GetAgentId() {
			return refuse("question " + q.ID + " is not one of agent " + r.GetAgentId())
		}
	}
	err = s.hub.Do(ctx, s.identity(p, nil), core.Reply{Question: r.GetQuestionId(), Selected: r.GetSelected(), Text: r.GetCustomText()})
	switch f := core.AsFault(err); {
	case err == nil:
		return &pb.AnswerQuestionResponse{Success: true}, nil
	case f.Code == core.CodeInvalid:
		return refuse(f.Message)
	}
	return refuse("no pending question with ID " + r.GetQuestionId())
}
