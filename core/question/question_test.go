package question_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAQuestionThatNobodyCanAnswerIsInvalid(t *testing.T) {
	for want, q := range map[string]question.Question{
		"question: missing; say what is asked":                                   {},
		"options: want at least one, or leave them out and the answer is a text": {Text: "?", Options: []question.Option{}},
		"options: want at most 100":                                              {Text: "?", Options: make([]question.Option, 101)},
		"options: each wants a label":                                            {Text: "?", Options: []question.Option{{Label: "a"}, {}}},
		"multi_select: there are no options to select":                           {Text: "?", Several: true},
	} {
		if err := q.Check(); err == nil || core.AsFault(err).Code != core.CodeInvalid || core.AsFault(err).Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, q := range []question.Question{{Text: "?"}, {Text: "?", Options: []question.Option{{Label: "a"}}, Several: true}} {
		if err := q.Check(); err != nil {
			t.Errorf("%+v: got %v, want no error", q, err)
		}
	}
}
