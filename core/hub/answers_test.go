package hub_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestARuleForAnAgentLetsItsQuestionsBeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: coretest.Rules(t, "* see,ask", "ann answer a")})}
		a := g.agent("a", able)
		to, _ := core.ParseAddress("a")
		for who, want := range map[string]core.Code{"ann": "", "bob": core.CodeNotAuthorized} {
			s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: who, Authenticated: true}, Dialect: "test"})
			s.WatchQuestions(question.View{Thread: "trip", For: core.Principal{ID: "ann", Authenticated: true}})
			asked, err := s.Open(core.Request{To: to, Content: "go", Thread: "trip"}, hub.OpenOptions{})
			if err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = a.AskPeople(t.Context(), asked.ID(), question.Question{Text: "Who?"}) }()
			q := g.nextQuestion(s).Question
			if _, err := s.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "me"}); err == nil && want != "" || err != nil && core.AsFault(err).Code != want {
				t.Errorf("%s answers: got %v, want %q", who, err, want)
			}
			g.report(a, asked, core.Done{})
			s.Close(nil)
		}
	})
}

// With rules a question of no agent is one that only operators may answer, and those who were asked.
func TestACallerWithoutATaskMayAnswerWhatItsToolAsksWhateverTheRules(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rules := coretest.Rules(t, "* see,ask,provide", "ann answer *", "eve answer *")
		g := &testHub{t, coretest.NewHub(t, hub.Options{Authorizer: rules})}
		p := g.pack("p", packTool("x"))
		person := func(id string) *hub.Session {
			s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id, Authenticated: true}, Dialect: "test"})
			t.Cleanup(func() { s.Close(nil) })
			return s
		}
		ann, eve := person("ann"), person("eve")
		eve.WatchQuestions(question.View{For: eve.Identity().Principal}) // a conversation whose agent is not known
		ann.WatchOwnQuestions()
		ann.CallTool("c", "x", nil)
		e := g.execution(p)
		said := make(chan string, 1)
		go func() {
			o, err := p.AskCaller(t.Context(), e.ID, question.Question{Text: "Who?"})
			said <- o.String() + fmt.Sprint(err)
		}()
		q := g.nextQuestion(ann).Question
		g.wantNoQuestion("eve, who has no part in it", eve)
		if got := g.hub.Questions(ann.Identity().Principal); len(got) != 1 || got[0].Text != "x asks: Who?" {
			t.Errorf("ann's list: got %+v, want her question", got)
		}
		if got := g.hub.Questions(eve.Identity().Principal); len(got) != 0 {
			t.Errorf("eve's list: got %+v, want nothing", got)
		}
		if _, err := eve.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "eve"}); core.AsFault(err) == nil || core.AsFault(err).Code != core.CodeUnknownTask {
			t.Errorf("eve answers: got %v, want it refused as one that is not there", err)
		}
		if _, err := ann.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Text: "ann"}); err != nil {
			t.Errorf("ann answers: got %v, want no error", err)
		}
		if got := <-said; got != "ann<nil>" {
			t.Errorf("got %s, want the answer of ann", got)
		}
	})
}
