package peer_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
)

// asking is an agent of hub b, which works on a task of ann from hub a, in the thread "trip".
func asking(t testing.TB, all map[string]*node) (bob *hub.Session, id core.TaskID) {
	t.Helper()
	bob = all["b"].join(t, all, core.Card{ID: "bob", Capabilities: []string{"ui"}})
	ann := all["a"].person("ann")
	if _, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "plan", Thread: "trip"}, hub.OpenOptions{}); err != nil {
		t.Fatal(err)
	}
	return bob, assigned(t, bob).ID()
}

// watching connects somebody who sees a conversation at a hub.
func watching(s *hub.Session, thread core.ThreadID, with core.AgentID) *hub.Session {
	s.WatchQuestions(question.View{Tag: thread, Thread: thread, Agent: with, For: s.Identity().Principal})
	return s
}

// shown waits until somebody is shown a question, or how it ended.
func shown(t testing.TB, s *hub.Session) *question.Update {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		b, err := s.Next(ctx)
		if err != nil {
			t.Fatalf("got %v, want a question", err)
		}
		if b.Question != nil {
			return b.Question
		}
	}
}

// outcomeOf is what became of a question of an agent.
type outcomeOf struct {
	question.Outcome
	err error
}

// askPeople has the agent ask the people of its task.
func askPeople(t testing.TB, agent *hub.Session, id core.TaskID) <-chan outcomeOf {
	done := make(chan outcomeOf, 1)
	go func() {
		o, err := agent.AskPeople(t.Context(), id, question.Question{Text: "Which day?", Options: []core.Option{{Label: "Monday"}, {Label: "Friday"}}})
		done <- outcomeOf{o, err}
	}()
	return done
}

func TestAQuestionIsShownAndAnsweredAtEveryHub(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob, id := asking(t, all)
	first, second := watching(all["a"].person("ann"), "trip", ""), watching(all["c"].person("ann"), "trip", "")
	stranger := all["c"].person("eve")
	done := askPeople(t, bob, id)
	q := shown(t, second).Question
	if other := shown(t, first).Question; other.ID != q.ID || q.Agent != "bob" || len(q.Tasks) != 1 || q.Tasks[0] != id {
		t.Errorf("got %+v at a and %+v at c, want the one question of the task", other, q)
	}
	for name, n := range all {
		if open, missing := n.ReadQuestions(core.Principal{ID: "ann"}, ""); len(open) != 1 || open[0].ID != q.ID || missing != nil {
			t.Errorf("hub %s lists %+v without %v, want the question", name, open, missing)
		}
		if open := n.Questions(core.Principal{ID: "eve"}); len(open) != 0 {
			t.Errorf("hub %s lists %+v for a stranger", name, open)
		}
	}
	if _, err := stranger.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Monday"}}); core.AsFault(err).Code != core.CodeUnknownTask {
		t.Errorf("a stranger: got %v, want it refused", err)
	}
	if _, err := second.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Sunday"}}); core.AsFault(err).Code != core.CodeInvalid {
		t.Errorf("an answer that does not fit: got %v, want it invalid", err)
	}
	if o, err := second.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err != nil || !o.Answered || o.By.ID != "ann" {
		t.Fatalf("got %+v and %v, want the answer taken", o, err)
	}
	if o := <-done; o.err != nil || o.String() != "Friday" {
		t.Errorf("the agent got %+v, want Friday", o)
	}
	for at, s := range map[string]*hub.Session{"a": first, "c": second} {
		if o := shown(t, s).Outcome; o == nil || o.String() != "Friday" || o.By.ID != "ann" {
			t.Errorf("hub %s shows the end %+v, want that ann chose Friday", at, o)
		}
	}
	if _, err := first.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Monday"}}); core.AsFault(err).Code != core.CodeConflict {
		t.Errorf("a second answer: got %v, want a conflict", err)
	}
}

func TestOfTwoAnswersAtTwoHubsOneCounts(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob, id := asking(t, all)
	one, other := watching(all["a"].person("ann"), "trip", ""), watching(all["c"].person("ann"), "trip", "")
	done := askPeople(t, bob, id)
	q := shown(t, one).Question
	shown(t, other)
	answers := make(chan string, 2)
	for s, day := range map[*hub.Session]string{one: "Monday", other: "Friday"} {
		go func() {
			if _, err := s.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{day}}); err == nil {
				answers <- day
			} else {
				answers <- string(core.AsFault(err).Code)
			}
		}()
	}
	got := map[string]bool{<-answers: true, <-answers: true}
	if won := (<-done).String(); !got[won] || !got[string(core.CodeConflict)] {
		t.Errorf("the agent got %s and those who answered %v, want one who was first and a conflict", won, got)
	}
}

func TestAQuestionIsRefusedOnlyIfNobodyIsAtAnyHub(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob, id := asking(t, all)
	if o := <-askPeople(t, bob, id); core.AsFault(o.err).Code != core.CodeUnsupported {
		t.Errorf("nobody is anywhere: got %+v, want it unsupported", o)
	}
	all["c"].ReadQuestions(core.Principal{ID: "ann"}, "") // who looks at the list from time to time
	done := askPeople(t, bob, id)
	reader := all["c"].person("ann")
	for len(done) == 0 {
		if open := all["c"].Questions(core.Principal{ID: "ann"}); len(open) == 1 {
			// the one before may be listed still
			if _, err := reader.AnswerQuestion(t.Context(), core.Reply{Question: open[0].ID, Text: "never"}); err == nil {
				break
			}
		}
		time.Sleep(time.Millisecond)
	}
	if o := <-done; o.err != nil || o.String() != "never" {
		t.Errorf("somebody reads the list at another hub: got %+v, want the answer", o)
	}
}

func TestAQuestionGoesToViewsOfItsAgentIfNoHubShowsItsThread(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob, id := asking(t, all)
	ofAgent := watching(all["a"].person("ann"), "other", "bob")
	done := askPeople(t, bob, id)
	q := shown(t, ofAgent).Question
	if _, err := ofAgent.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Monday"}}); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.String() != "Monday" {
		t.Errorf("got %+v, want Monday", o)
	}
	shown(t, ofAgent)
	for len(all["c"].Questions(core.Principal{ID: "ann"})) > 0 {
		time.Sleep(time.Millisecond) // until its end has arrived there
	}
	ofThread := watching(all["c"].person("ann"), "trip", "")
	done = askPeople(t, bob, id)
	q = shown(t, ofThread).Question
	if _, err := ofThread.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.String() != "Friday" {
		t.Errorf("got %+v, want Friday", o)
	}
	ofAgent.Close(nil)
	for {
		b, err := ofAgent.Next(t.Context())
		if err != nil {
			break
		}
		if b.Question != nil {
			t.Errorf("a view of the agent is shown %+v although another hub shows the thread", b.Question)
		}
	}
}

// ann asks bob, and bob asks cy, each at a hub of its own: what cy asks is a matter of ann's
// conversation.
func TestAQuestionReachesThePeopleAboveItsTask(t *testing.T) {
	all := connected(t, "a", "b", "c")
	bob, _ := asking(t, all)
	cy := all["c"].join(t, all, core.Card{ID: "cy"})
	ask(t, bob, core.ToAgent("cy"))
	held := assigned(t, cy)
	ann := watching(all["a"].person("ann"), "trip", "")
	done := askPeople(t, cy, held.ID())
	q := shown(t, ann).Question
	if _, err := ann.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Friday"}}); err != nil {
		t.Fatal(err)
	}
	if o := <-done; o.String() != "Friday" {
		t.Errorf("got %+v, want Friday", o)
	}
}

func TestQuestionsGoWithTheirHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		if _, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "plan", Thread: "trip"}, hub.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		held := assigned(t, bob)
		watching(ann, "trip", "")
		askPeople(t, bob, held.ID())
		q := shown(t, ann).Question
		w.net.Kill("b")
		if o := shown(t, ann).Outcome; o == nil || o.Answered {
			t.Errorf("got %+v, want the question withdrawn", o)
		}
		_, err := ann.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Monday"}})
		if core.AsFault(err).Code != core.CodeConflict {
			t.Errorf("an answer to it: got %v, want a conflict", err)
		}
	})
}

func TestAHubThatComesUpShowsTheQuestionsThatAreOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		bob := w.join("b", core.Card{ID: "bob"})
		ann := w.person("a")
		if _, err := ann.Open(core.Request{To: core.ToAgent("bob"), Content: "plan", Thread: "trip"}, hub.OpenOptions{}); err != nil {
			t.Fatal(err)
		}
		held := assigned(t, bob)
		watching(ann, "trip", "")
		done := askPeople(t, bob, held.ID())
		shown(t, ann)
		w.net.Kill("c")
		time.Sleep(5 * time.Second) // it is taken over
		w.hubs["c"].stop()
		w.start("c", 2)
		late := watching(w.person("c"), "trip", "")
		q := shown(t, late).Question
		if _, err := late.AnswerQuestion(t.Context(), core.Reply{Question: q.ID, Selected: []string{"Monday"}}); err != nil {
			t.Fatal(err)
		}
		if o := <-done; o.String() != "Monday" {
			t.Errorf("got %+v, want Monday", o)
		}
	})
}
