package client_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// qwenOptions are those of every question of Qwen Code 0.24.
const qwenOptions = `[{"optionId":"proceed_once","name":"Submit","kind":"allow_once"},{"optionId":"cancel","name":"Cancel","kind":"reject_once"}]`

// qwenAsks runs a turn in which Qwen Code asks people, and returns what it is answered and what the task told.
func qwenAsks(t *testing.T, questions, options string, people func(s *served, p *peer)) (got string, told []string) {
	t.Helper()
	serve(t, nil, func(s *served) {
		p, stop := s.start(`{}`)
		s.user.WatchQuestions(question.View{Agent: "a", For: s.user.Identity().Principal})
		asked := s.ask("x")
		p.begins("s1")
		prompt := p.wants("session/prompt")
		p.permits("0", "s1", `{"toolCallId":"c1","status":"pending","title":"Ask user","kind":"think","rawInput":{"questions":[]},"_meta":{"toolName":"ask_user_question","qwenInteractionKind":"user_question","qwenQuestions":`+questions+`}}`, options)
		people(s, p)
		got = p.answers("0")
		p.updates("s1", `{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`)
		p.replies(prompt, `{"stopReason":"end_turn"}`)
		s.wait(asked)
		told = s.told(asked)
		_ = stop()
	})
	return got, told
}

const (
	qwenColour = `{"header":"Colour","question":"Which colour?","options":[{"label":"ochre","description":"a warm one"},{"label":"mauve","description":"a cold one"}]}`
	qwenSizes  = `{"header":"Size","question":"Which sizes?","multiSelect":true,"options":[{"label":"S","description":"small"},{"label":"M","description":"medium"}]}`
)

func TestAQuestionOfQwenCodeIsPutToPeopleAndAnsweredInItsForm(t *testing.T) {
	got, told := qwenAsks(t, `[`+qwenColour+`,`+qwenSizes+`,`+qwenColour+`]`, qwenOptions, func(s *served, _ *peer) {
		if text, options := s.answer(core.Reply{Selected: []string{"mauve"}}); text != "Which colour?" || !slices.Equal(options, []string{"ochre", "mauve"}) {
			s.Errorf("got the question %q with %q, want that of the agent", text, options)
		}
		if text, _ := s.answer(core.Reply{Selected: []string{"S", "M"}, Text: "and XL"}); text != "Which sizes?" {
			s.Errorf("got the question %q, want the second", text)
		}
		s.answer(core.Reply{Text: "neither"})
	})
	if want := `{"outcome":{"outcome":"selected","optionId":"proceed_once"},"answers":{"0":"mauve","1":"S, M, and XL","2":"neither"}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var kinds []string
	for _, line := range told {
		kind, _, _ := strings.Cut(line, " ")
		kinds = append(kinds, kind)
	}
	const want = "tool_call question_asked question_answered question_asked question_answered question_asked question_answered tool_result done"
	if all := strings.Join(kinds, " "); all != want {
		t.Errorf("the task told %s, want %s", all, want)
	}
}

func TestAQuestionOfQwenCodeThatNobodyAnswersIsCancelled(t *testing.T) {
	const cancelled = `{"outcome":{"outcome":"cancelled"}}`
	got, _ := qwenAsks(t, `[`+qwenColour+`,`+qwenSizes+`]`, qwenOptions, func(s *served, _ *peer) {
		s.answer(core.Reply{Selected: []string{"mauve"}})
		s.answer(core.Reply{Dismissed: true})
	})
	if got != cancelled {
		t.Errorf("got %s, want %s", got, cancelled)
	}
	got, _ = qwenAsks(t, `[`+qwenColour+`]`, qwenOptions, func(s *served, p *peer) {
		synctest.Wait()
		p.says(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0}}`)
	})
	if want := `the request was cancelled (code -32800)`; got != want {
		t.Errorf("withdrawn: got %s, want %s", got, want)
	}
}

func TestAQuestionOfQwenCodeThatCannotBeAskedIsAnApproval(t *testing.T) {
	for name, c := range map[string]struct{ questions, options string }{
		"no list":          {`7`, qwenOptions},
		"no questions":     {`[]`, qwenOptions},
		"no text":          {`[{"options":[{"label":"a"}]}]`, qwenOptions},
		"no label":         {`[{"question":"q","options":[{"label":""}]}]`, qwenOptions},
		"too many":         {`[` + strings.TrimSuffix(strings.Repeat(qwenColour+",", 17), ",") + `]`, qwenOptions},
		"too long":         {fmt.Sprintf(`[{"question":%q,"options":[{"label":"a"}]}]`, strings.Repeat("q", 17<<10)), qwenOptions},
		"nothing to allow": {`[` + qwenColour + `]`, `[{"optionId":"cancel","name":"Cancel","kind":"reject_once"}]`},
	} {
		got, told := qwenAsks(t, c.questions, c.options, func(s *served, _ *peer) {
			synctest.Wait()
			for _, asked := range s.hub.ApprovalsHere(s.user.Identity().Principal) {
				if err := s.user.Decide(hub.NoWait, asked.Task, core.ApprovalDecided{ID: "c1"}); err != nil {
					s.Error(err)
				}
			}
		})
		if want := `{"outcome":{"outcome":"selected","optionId":"cancel"}}`; got != want || !strings.HasPrefix(told[1], "approval_requested ") {
			t.Errorf("%s: got %s after %q, want it to be an approval, and denied", name, got, told)
		}
	}
}
