package client

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// userQuestions returns the questions to people that a request for permission is; none if it is one for permission, or
// has one that cannot be asked.
func userQuestions(p *wire.PermissionRequest) (all []question.Question) {
	if _, answerable := p.Option(wire.AllowOnce); !answerable {
		return nil
	}
	for _, u := range p.UserQuestions() {
		q := question.Question{Header: u.Header, Text: u.Question, Several: u.MultiSelect}
		for _, o := range u.Options {
			q.Options = append(q.Options, core.Option{Label: o.Label, Description: o.Description})
		}
		if q.Check() != nil {
			return nil
		}
		all = append(all, q)
	}
	return all
}

// putAll asks people one question after the other, and returns the answers to all as the answer to the request. It
// returns an unreachable Fault, or the error of Ask, once one is not answered.
func (t *turn) putAll(ctx context.Context, p *wire.PermissionRequest, all []question.Question) (any, error) {
	allow, _ := p.Option(wire.AllowOnce)
	said := wire.UserAnswers{Answers: map[string]string{}}
	said.Outcome = wire.PermissionOutcome{Outcome: wire.OutcomeSelected, OptionID: allow.OptionID}
	for i, q := range all {
		o, err := t.Ask(ctx, q)
		if err != nil {
			return nil, err
		}
		if !o.Answered {
			return nil, core.NewFault(core.CodeUnreachable, "nobody has answered: %s", o.Reason)
		}
		words := slices.Clone(o.Selected)
		if o.Text != "" {
			words = append(words, o.Text)
		}
		said.Answers[strconv.Itoa(i)] = strings.Join(words, ", ")
	}
	return said, nil
}
