package question_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// peer records each call, as a line.
type peer struct {
	mu    sync.Mutex
	calls []string
}

func (p *peer) note(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, fmt.Sprintf(format, args...))
}

func (p *peer) Show(u question.Update) {
	if u.Outcome == nil {
		p.note("%v: %s?", u.Tag, u.Question.ID)
	} else {
		p.note("%v: %s: %s", u.Tag, u.Question.ID, u.Outcome)
	}
}

func (p *peer) Settled(ref string, o question.Outcome, fault *core.Fault) {
	if fault != nil {
		p.note("%s: fault %s", ref, fault.Code)
	} else {
		p.note("%s: %s", ref, o)
	}
}

// wants checks the calls of the peer since the last check, and forgets them.
func (p *peer) wants(t *testing.T, who string, want ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if diff := cmp.Diff(want, p.calls); diff != "" {
		t.Errorf("calls of %s (-want +got):\n%s", who, diff)
	}
	p.calls = nil
}

var ada, bob = core.Principal{ID: "ada"}, core.Principal{ID: "bob"}

func newBook(limit int) *question.Book {
	return question.NewBook(question.Options{
		Limit: limit,
		MayAnswer: func(p core.Principal, _ core.AgentID, owner core.Principal) bool {
			return p.Operator || p.ID == owner.ID
		},
	})
}

// task is one that ada asked for in a thread, and that goes on.
func task(id core.TaskID, thread core.ThreadID) question.Task {
	return question.Task{ID: id, Sources: []question.Source{{Thread: thread, From: ada}}, Working: func() bool { return true }}
}

// ask is a question of agent a with two options that waits for a minute.
func ask(id string, asker question.Peer, tasks ...question.Task) question.Request {
	now := time.Now()
	return question.Request{
		Question: question.Question{
			ID: id, Agent: "a", Text: "Which day?", Options: []core.Option{{Label: "Mon"}, {Label: "Fri"}}, Since: now, Until: now.Add(time.Minute),
		},
		Asker: asker, Ref: "call " + id, Tasks: tasks,
	}
}

func mustPut(t *testing.T, b *question.Book, r question.Request) {
	t.Helper()
	if err := b.Put(r); err != nil {
		t.Fatalf("putting %s: got %v, want no error", r.Question.ID, err)
	}
}

func wantFault(t *testing.T, what string, err error, want core.Code) {
	t.Helper()
	if !errors.Is(err, &core.Fault{Code: want}) {
		t.Errorf("%s: got %v, want a fault %s", what, err, want)
	}
}

func wantOpen(t *testing.T, b *question.Book, want ...string) {
	t.Helper()
	var got []string
	for _, q := range b.List(core.Principal{Operator: true}, "") {
		got = append(got, q.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("open (-want +got):\n%s", diff)
	}
}

func TestAQuestionGoesToTheViewsOfItsThreadAndElseToThoseOfItsAgent(t *testing.T) {
	b, asker := newBook(10), &peer{}
	trip, chat, foreign := &peer{}, &peer{}, &peer{}
	b.Watch(chat, question.View{Tag: "chat", Thread: "chat", Agent: "a", For: ada})
	b.Watch(foreign, question.View{Tag: "foreign", Thread: "trip", Agent: "a", For: bob})
	mustPut(t, b, ask("q1", asker, task("t1", "trip")))
	b.Watch(trip, question.View{Tag: "trip", Thread: "trip", For: ada})
	mustPut(t, b, ask("q2", asker, task("t1", "trip")))
	trip.wants(t, "a view of the thread", "trip: q1?", "trip: q2?")
	chat.wants(t, "a view of the agent", "chat: q1?")
	foreign.wants(t, "a view for somebody who may not read the task")

	if _, err := b.Answer(ada, core.Reply{Question: "q1", Selected: []string{"Fri"}}); err != nil {
		t.Fatal(err)
	}
	b.Unwatch(chat, "chat")
	b.Watch(chat, question.View{Tag: "chat", Thread: "chat", Agent: "a", For: ada})
	trip.wants(t, "a view of the thread", "trip: q1: Fri")
	chat.wants(t, "a view of the agent", "chat: q1: Fri")
	asker.wants(t, "the asker", "call q1: Fri")
	wantOpen(t, b, "q2")
}

func TestAQuestionWithoutATaskGoesToEveryViewOfItsAgent(t *testing.T) {
	b, asker, adas, bobs := newBook(10), &peer{}, &peer{}, &peer{}
	wantFault(t, "without a view", b.Put(ask("q1", asker)), core.CodeUnsupported)
	b.Watch(adas, question.View{Agent: "a", For: ada})
	b.Watch(bobs, question.View{Agent: "a", For: bob})
	b.Watch(bobs, question.View{Tag: "other", Agent: "b", For: bob})
	mustPut(t, b, ask("q2", asker))
	adas.wants(t, "ada", "<nil>: q2?")
	bobs.wants(t, "bob", "<nil>: q2?")
	if got := b.List(bob, ""); len(got) != 1 {
		t.Errorf("bob lists %v, want what he was shown", got)
	}
	if o, err := b.Answer(bob, core.Reply{Question: "q2", Dismissed: true}); err != nil || o.By != bob {
		t.Errorf("got %+v and %v, want it dismissed by bob", o, err)
	}
	asker.wants(t, "the asker", "call q2: dismissed")
}

func TestAQuestionWithoutAViewWaitsForThoseWhoReadTheList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, asker := newBook(10), &peer{}
		wantFault(t, "nobody reads the list", b.Put(ask("q1", asker, task("t1", "trip"))), core.CodeUnsupported)
		b.Attend(bob, "")
		wantFault(t, "somebody reads it who may not answer", b.Put(ask("q2", asker, task("t1", "trip"))), core.CodeUnsupported)
		b.Attend(ada, "concert")
		wantFault(t, "somebody reads those of another thread", b.Put(ask("q2", asker, task("t1", "trip"))), core.CodeUnsupported)
		b.Attend(ada, "trip")
		mustPut(t, b, ask("q3", asker, task("t1", "trip")))
		if _, err := b.Answer(ada, core.Reply{Question: "q3", Selected: []string{"Fri"}}); err != nil {
			t.Fatal(err)
		}
		asker.wants(t, "the asker", "call q3: Fri")
		time.Sleep(question.AttendTime)
		wantFault(t, "nobody reads it any more", b.Put(ask("q4", asker, task("t1", "trip"))), core.CodeUnsupported)
	})
}

func TestWhoReadsManyListsMakesTheBookForgetNobodyElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, asker, mallory := newBook(10), &peer{}, core.Principal{ID: "mallory", Authenticated: true}
		b.Attend(ada, "trip")
		for i := range 5000 {
			b.Attend(mallory, core.ThreadID(fmt.Sprint("m", i)))
		}
		mustPut(t, b, ask("q1", asker, task("t1", "trip")))
	})
}

func TestTheFirstAnswerThatFitsCounts(t *testing.T) {
	b, asker, view := newBook(1), &peer{}, &peer{}
	b.Watch(view, question.View{Thread: "trip", For: ada})
	mustPut(t, b, ask("q1", asker, task("t1", "trip")))
	wantFault(t, "over the limit", b.Put(ask("q2", asker, task("t1", "trip"))), core.CodeOverloaded)
	for what, a := range map[string]core.Reply{
		"nothing":     {},
		"two options": {Selected: []string{"Mon", "Fri"}},
		"no option":   {Selected: []string{"Sun"}},
	} {
		a.Question = "q1"
		_, err := b.Answer(ada, a)
		wantFault(t, what, err, core.CodeInvalid)
	}
	_, err := b.Answer(bob, core.Reply{Question: "q1", Text: "never"})
	wantFault(t, "somebody else", err, core.CodeUnknownTask)
	if _, err := b.Answer(core.Principal{ID: "root", Operator: true}, core.Reply{Question: "q1", Selected: []string{"Fri"}, Text: "at noon"}); err != nil {
		t.Errorf("an operator: got %v, want no error", err)
	}
	_, err = b.Answer(ada, core.Reply{Question: "q1", Text: "Mon"})
	wantFault(t, "the second answer", err, core.CodeConflict)
	_, err = b.Answer(ada, core.Reply{Question: "q9", Text: "Mon"})
	wantFault(t, "what nobody asked", err, core.CodeUnknownTask)
	asker.wants(t, "the asker", "call q1: Fri, at noon")

	mustPut(t, b, ask("q3", asker, task("t1", "trip")))
	b.TaskEnded("t1")
	_, err = b.Answer(ada, core.Reply{Question: "q1", Text: "Mon"})
	wantFault(t, "one that was settled long ago", err, core.CodeUnknownTask)
}

func TestAQuestionEndsAtItsTimeoutOrWithTheLastOfItsTasks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, asker, view := newBook(10), &peer{}, &peer{}
		b.Watch(view, question.View{Tag: "v", Thread: "trip", For: ada})
		mustPut(t, b, ask("q1", asker, task("t1", "trip"), task("t2", "trip")))
		mustPut(t, b, ask("q2", asker, task("t2", "trip")))
		time.Sleep(30 * time.Second)
		b.TaskEnded("t2")
		wantOpen(t, b, "q1")
		asker.wants(t, "the asker", "call q2: task_ended")
		time.Sleep(31 * time.Second)
		wantOpen(t, b)
		asker.wants(t, "the asker", "call q1: timeout")
		b.TaskEnded("t1")
		asker.wants(t, "the asker after the timeout")
	})
}

func TestATaskThatEndsWhileItsQuestionIsPutCountsAsEnded(t *testing.T) {
	b, asker, view := newBook(10), &peer{}, &peer{}
	b.Watch(view, question.View{Tag: "v", Thread: "trip", For: ada})
	b.Watch(view, question.View{Tag: "w", Thread: "work", For: ada})
	ended, ending := task("t1", "work"), task("t2", "work")
	ended.Working = func() bool { return false }
	ending.Working = func() bool { b.TaskEnded("t2"); return true } // it ends behind the look
	wantFault(t, "all have ended", b.Put(ask("q1", asker, ended, ending)), core.CodeCancelled)
	mustPut(t, b, ask("q2", asker, ended, task("t3", "trip")))
	if got := b.List(ada, ""); len(got) != 1 || len(got[0].Tasks) != 1 || got[0].Tasks[0] != "t3" {
		t.Errorf("got %+v, want a question for the task that goes on", got)
	}
	view.wants(t, "the view", "v: q2?")
	b.TaskEnded("t3")
	asker.wants(t, "the asker", "call q2: task_ended")
}

func TestAPeerThatLeavesEndsItsQuestionsAndViews(t *testing.T) {
	b, asker, other, view, gone := newBook(10), &peer{}, &peer{}, &peer{}, &peer{}
	b.Watch(view, question.View{Tag: "v", Agent: "a", For: ada})
	b.Watch(gone, question.View{Tag: "g", Agent: "a", For: bob})
	mustPut(t, b, ask("q1", asker))
	mustPut(t, b, ask("q2", other))
	gone.wants(t, "who leaves, before", "g: q1?", "g: q2?")
	b.Leave(gone)
	if got := b.List(bob, ""); len(got) > 0 {
		t.Errorf("who has left lists %v, want nothing", got)
	}
	for range 2 {
		b.Leave(asker)
	}
	wantOpen(t, b, "q2")
	gone.wants(t, "who has left")
	asker.wants(t, "the asker", "call q1: left")
	view.wants(t, "the other view", "v: q1?", "v: q2?", "v: q1: left")
}

func TestAStoppedBookSettlesEverythingAndRefusesMore(t *testing.T) {
	b, asker, view := newBook(10), &peer{}, &peer{}
	b.Watch(view, question.View{Tag: "v", Agent: "a", For: ada})
	mustPut(t, b, ask("q1", asker))
	b.Stop(core.NewFault(core.CodeUnreachable, "the hub stopped"))
	asker.wants(t, "the asker", "call q1: fault unreachable")
	view.wants(t, "the view", "v: q1?", "v: q1: left")
	wantFault(t, "a question to a stopped book", b.Put(ask("q2", asker)), core.CodeUnreachable)
}

func TestAQuestionIsSettledOnceWhateverEndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var counts sync.Mutex
		seen := map[string]int{}
		b := question.NewBook(question.Options{
			Limit: 1000, MayAnswer: func(core.Principal, core.AgentID, core.Principal) bool { return true },
			Settled: func(q question.Question, _ []core.TaskID, _ question.Outcome, _ *core.Fault) {
				counts.Lock()
				defer counts.Unlock()
				seen[q.ID]++
			},
		})
		var life sync.WaitGroup
		askers := make([]*peer, 200)
		for i := range askers {
			askers[i] = &peer{}
		}
		for i := range askers {
			b.Watch(askers[i], question.View{Tag: i, Agent: "a", For: ada})
			id := fmt.Sprint(i)
			var mu sync.Mutex
			var ended bool
			t1 := task(core.TaskID(id), "trip")
			t1.Working = func() bool { mu.Lock(); defer mu.Unlock(); return !ended }
			life.Go(func() {
				r := ask(id, askers[i], t1)
				r.Question.Until = time.Now().Add(time.Duration(i%3) * time.Millisecond)
				_ = b.Put(r) // cancelled, if the task ended before
			})
			life.Go(func() {
				time.Sleep(time.Duration(i%5) * time.Millisecond)
				mu.Lock()
				ended = true
				mu.Unlock()
				b.TaskEnded(core.TaskID(id))
			})
			life.Go(func() { _, _ = b.Answer(ada, core.Reply{Question: id, Dismissed: true}) })
			life.Go(func() { b.Unwatch(askers[i], i); b.Leave(askers[(i+1)%len(askers)]) })
		}
		life.Wait()
		wantOpen(t, b)
		synctest.Wait() // for those that time out
		counts.Lock()
		defer counts.Unlock()
		for id, n := range seen {
			if n != 1 {
				t.Errorf("question %s was settled %d times, want once", id, n)
			}
		}
	})
}
