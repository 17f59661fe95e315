package question_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestAQuestionThatNobodyCanAnswerIsInvalid(t *testing.T) {
	for want, q := range map[string]question.Question{
		"question: missing; say what is asked":                                   {},
		"options: want at least one, or leave them out and the answer is a text": {Text: "?", Options: []core.Option{}},
		"options: want at most 100":                                              {Text: "?", Options: make([]core.Option, 101)},
		"options: each wants a label":                                            {Text: "?", Options: []core.Option{{Label: "a"}, {}}},
		"multi_select: there are no options to select":                           {Text: "?", Several: true},
		"form.message: missing; say what is asked":                               {Text: "?", Form: &question.Form{Schema: json.RawMessage("{}")}},
		"form.schema: want the JSON Schema of the answer, an object":             {Text: "?", Form: &question.Form{Message: "?", Schema: json.RawMessage("true")}},
		`form.decline: "no" is none of the options`:                              {Text: "?", Form: &question.Form{Message: "?", Schema: json.RawMessage("{}"), Decline: "no"}},
	} {
		if err := q.Check(); err == nil || core.AsFault(err).Code != core.CodeInvalid || core.AsFault(err).Message != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for _, q := range []question.Question{{Text: "?"}, {Text: "?", Options: []core.Option{{Label: "a"}}, Several: true}} {
		if err := q.Check(); err != nil {
			t.Errorf("%+v: got %v, want no error", q, err)
		}
	}
}

func TestAFormWithATooLargeSchemaIsRefused(t *testing.T) {
	q := question.Question{Text: "?", Form: &question.Form{Message: "?", Schema: json.RawMessage("{}" + strings.Repeat(" ", 64<<10))}}
	if f := core.AsFault(q.Check()); f == nil || f.Code != core.CodeTooLarge || !strings.HasPrefix(f.Message, "form.schema: it has 65538 bytes") {
		t.Errorf("got %v, want it refused as too large", f)
	}
}

func TestAFormIsAnsweredWithItsContentOrAsTheQuestion(t *testing.T) {
	ada := core.Principal{ID: "ada"}
	for _, tt := range []struct {
		reply core.Reply
		form  bool
		want  string // the outcome, or the refusal
	}{
		{core.Reply{Content: json.RawMessage(` {"day":1}`)}, true, ` {"day":1}`},
		{core.Reply{Text: "Monday", Content: json.RawMessage("null")}, true, "Monday"},
		{core.Reply{Selected: []string{"no"}}, true, "no"},
		{core.Reply{Dismissed: true}, true, "dismissed"},
		{core.Reply{Content: json.RawMessage(`[1]`)}, true, "content: want an object with the fields of the form"},
		{core.Reply{Content: json.RawMessage(`{"a":"` + strings.Repeat("x", 64<<10) + `"}`)}, true, "content: it has 65544 bytes, the limit is 65536"},
		{core.Reply{Content: json.RawMessage(`{}`)}, false, "content: the question has no form: answer with a selection or text"},
		{core.Reply{Text: "Monday", Content: json.RawMessage(`{}`)}, true, "content: it is a whole answer: send either that or a selection and text"},
		{core.Reply{Content: json.RawMessage("null")}, true, "at least one selection, custom_text or content is required"},
		{core.Reply{Content: json.RawMessage(`{"day":"x"}`)}, true, "content: day: want a number"},
	} {
		b := question.NewBook(question.Options{Limit: 1, MayAnswer: func(core.Principal, core.AgentID, core.Principal) bool { return true }, Schema: numberOfDay})
		b.Attend(ada, "")
		q := question.Question{ID: "q", Text: "?", Options: []core.Option{{Label: "no"}}, Until: time.Now().Add(time.Hour)}
		if tt.form {
			q.Form = &question.Form{Message: "?", Schema: json.RawMessage("{}")}
		}
		if err := b.Put(question.Request{Question: q, Asker: &peer{}, Call: question.Source{Thread: "call", From: ada}}); err != nil {
			t.Fatal(err)
		}
		tt.reply.Question = "q"
		o, err := b.Answer(ada, tt.reply)
		got := o.String()
		if err != nil {
			got = core.AsFault(err).Message
		}
		if got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.reply, got, tt.want)
		}
		b.Stop(core.NewFault(core.CodeUnreachable, "over"))
	}
}

// numberOfDay stands for the compiler of schemas.
func numberOfDay([]byte) (func([]byte) error, error) {
	return func(content []byte) error {
		var in struct{ Day *int }
		if json.Unmarshal(content, &in) != nil {
			return errors.New("day: want a number")
		}
		return nil
	}, nil
}
