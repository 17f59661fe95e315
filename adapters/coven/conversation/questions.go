package conversation

import (
	"context"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// attend tells the reader what does not stand in the line of the conversation, until
// its link closes or the hub stops: questions of agents, and the turns that are told
// apart. It tells who answered a question elsewhere, but not that it is too late: the
// question said until when there is time.
func (r *reader) attend(ctx context.Context) {
	for {
		b, err := r.session.Next(ctx)
		if err != nil {
			return
		}
		a := b.Question
		switch {
		case b.Gap != nil:
			r.service.count("gap")
			err = r.say(ctx, gapIn(r.key, b.Task))
		case b.Task != nil:
			err = r.hearApart(ctx, b.Tag.(*apart), b.Events)
		case a == nil:
			continue
		case a.Outcome == nil:
			err = r.say(ctx, userQuestion(r.key, a.Question))
		case a.Outcome.By.ID != "" && a.Outcome.By != r.principal:
			err = r.say(ctx, answeredIn(r.key, a))
		}
		if err != nil {
			return // the link is closed
		}
	}
}

// look says whose questions the reader is to be put.
func (r *reader) look(with core.AgentID) {
	if with == "" {
		with = core.AgentID(r.key) // existing clients name conversations for the agent
	}
	if with != r.with {
		r.with = with
		r.session.WatchQuestions(question.View{Thread: core.ThreadID(r.key), Agent: with, For: r.principal})
	}
}

func userQuestion(key string, q question.Question) *pb.ClientStreamEvent {
	m := &pb.UserQuestionRequest{
		AgentId: wire.ValidUTF8(string(q.Agent)), QuestionId: q.ID, Question: q.Text, MultiSelect: q.Several,
		TimeoutSeconds: int32(q.Until.Sub(q.Since) / time.Second),
	}
	if q.Header != "" {
		m.Header = &q.Header
	}
	for _, o := range q.Options {
		option := &pb.QuestionOption{Label: o.Label}
		if o.Description != "" {
			option.Description = &o.Description
		}
		m.Options = append(m.Options, option)
	}
	return &pb.ClientStreamEvent{
		ConversationKey: wire.ValidUTF8(key), Timestamp: timestamp(time.Now()), Payload: &pb.ClientStreamEvent_UserQuestion{UserQuestion: m},
	}
}

// answeredIn tells that somebody else has answered, as an event of the conversation:
// Coven has no word for it.
func answeredIn(key string, a *question.Update) *pb.ClientStreamEvent {
	text := wire.ValidUTF8(a.Outcome.By.ID + " answered: " + a.Outcome.String())
	at := timestamp(time.Now())
	return &pb.ClientStreamEvent{ConversationKey: wire.ValidUTF8(key), Timestamp: at, Payload: &pb.ClientStreamEvent_Event{Event: &pb.Event{
		Id: a.Question.ID, ConversationKey: wire.ValidUTF8(key), Direction: outbound, Author: "hub", Timestamp: at, Type: "question_answered", Text: &text,
	}}}
}

// AnswerQuestion implements the service. The first answer counts.
func (s *Service) AnswerQuestion(ctx context.Context, r *pb.AnswerQuestionRequest) (*pb.AnswerQuestionResponse, error) {
	p, err := s.opts.Principal(ctx)
	switch {
	case err != nil:
		return nil, err
	case r.GetAgentId() == "":
		return nil, errInvalid("agent_id required")
	case r.GetQuestionId() == "":
		return nil, errInvalid("question_id required")
	}
	refuse := func(text string) (*pb.AnswerQuestionResponse, error) {
		return &pb.AnswerQuestionResponse{Error: &text}, nil
	}
	for _, q := range s.hub.Questions(p) {
		if q.ID == r.GetQuestionId() && wire.ValidUTF8(string(q.Agent)) != r.GetAgentId() {
			return refuse("question " + q.ID + " is not one of agent " + r.GetAgentId())
		}
	}
	as := s.hub.Connect(s.peer(p))
	defer as.Close(nil)
	_, err = as.AnswerQuestion(r.GetQuestionId(), question.Answer{Selected: r.GetSelected(), Text: r.GetCustomText()})
	switch f := core.AsFault(err); {
	case err == nil:
		return &pb.AnswerQuestionResponse{Success: true}, nil
	case f.Code == core.CodeInvalid:
		return refuse(f.Message)
	}
	return refuse("no pending question with ID " + r.GetQuestionId())
}
