package peer_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// sender sends requests with keys to the hubs of a world.
type sender struct {
	w    *world
	keys map[string]*hub.Keys
	at   map[string]*hub.Session
}

func newSender(w *world) *sender {
	s := &sender{w, map[string]*hub.Keys{}, map[string]*hub.Session{}}
	for name, m := range w.hubs {
		s.begin(name, m)
	}
	return s
}

func (s *sender) begin(name string, m *member) {
	s.keys[name] = m.NewKeys("test", hub.KeysOptions{All: 100, Age: 5 * time.Minute})
	s.at[name] = s.w.person(name)
}

// send sends a request for bob with a key, as long as it is refused as one to be sent again: for less time than the
// store has its key.
func (s *sender) send(at, key, content string) (id core.TaskID, known bool, err error) {
	s.w.t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		id, known, err = s.once(at, key, content, func() {})
		if f := core.AsFault(err); f == nil || !f.Retryable {
			return id, known, err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return id, known, err
}

// once sends it once, and calls a function between its acceptance and the news of it.
func (s *sender) once(at, key, content string, then func()) (id core.TaskID, known bool, err error) {
	return s.keys[at].Once(s.w.t.Context(), hub.Repeatable{Owner: "ann", Name: key, Content: sha256.Sum256([]byte(content))}, func(key string) (core.TaskID, error) {
		defer then()
		t, err := s.at[at].Open(core.Request{To: core.ToAgent("bob"), Content: content}, hub.OpenOptions{Keep: true, Unwatched: true, Key: key})
		if err != nil {
			return "", err
		}
		return t.ID(), nil
	})
}

// want fails the test unless a request is known as a task.
func (s *sender) want(at, key, content string, want core.TaskID) {
	s.w.t.Helper()
	if id, known, err := s.send(at, key, content); err != nil || !known || id != want {
		s.w.t.Errorf("at hub %s: got task %s, known %t, %v; want %s, known", at, id, known, err, want)
	}
}

func (s *sender) wantTasks(at string, n int) {
	s.w.t.Helper()
	time.Sleep(time.Second) // all are at their hubs
	page, err := s.w.hubs[at].Tasks(s.w.t.Context(), core.Principal{ID: "ann", Operator: true}, task.Filter{})
	if err != nil || len(page.Tasks) != n || len(page.Missing) > 0 {
		s.w.t.Errorf("at hub %s: got %d tasks without those of %q, %v; want %d", at, len(page.Tasks), page.Missing, err, n)
	}
}

func TestARequestThatIsSentAgainIsKnownAtEveryHub(t *testing.T) {
	for _, agent := range []string{"a", "b", "c"} {
		t.Run("the agent is at "+agent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.join(agent, core.Card{ID: "bob"})
				s := newSender(w)
				first, known, err := s.send("a", "k", "why?")
				if err != nil || known {
					t.Fatalf("got known %t and %v, want a new task", known, err)
				}
				for _, at := range []string{"b", "c", "a"} {
					s.want(at, "k", "why?", first)
				}
				for _, at := range []string{"a", "b", "c"} {
					if _, _, err := s.send(at, "k", "what?"); !errors.Is(err, hub.ErrOtherContent) {
						t.Errorf("other content at hub %s: got %v, want it refused", at, err)
					}
				}
				if other, known, err := s.send("b", "l", "why?"); err != nil || known || other == first {
					t.Errorf("another key: got task %s, known %t, %v; want a new one", other, known, err)
				}
				s.wantTasks("c", 2)
			})
		})
	}
}

func TestAKeyIsForgottenAtEveryHubAfterItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("c", core.Card{ID: "bob"})
		s := newSender(w)
		first, _, err := s.send("a", "k", "why?")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5*time.Minute + time.Second)
		if later, known, err := s.send("b", "k", "what?"); err != nil || known || later == first {
			t.Errorf("got task %s, known %t, %v; want a new one", later, known, err)
		}
	})
}

func TestARequestThatComesToAllHubsAtOnceOpensOneTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		s := newSender(w)
		const keys = 30
		type sent struct {
			id    core.TaskID
			known bool
			err   error
		}
		answers := make(chan sent)
		for i := range keys {
			for _, at := range []string{"a", "b", "c", "a"} {
				go func() {
					id, known, err := s.send(at, fmt.Sprint(i), "why?")
					answers <- sent{id, known, err}
				}()
			}
			tasks, fresh := map[core.TaskID]bool{}, 0
			for range 4 {
				a := <-answers
				if a.err != nil {
					t.Fatal(a.err)
				}
				if tasks[a.id] = true; !a.known {
					fresh++
				}
			}
			if len(tasks) != 1 || fresh != 1 {
				t.Errorf("request %d: got %d tasks, %d of them new, want one", i, len(tasks), fresh)
			}
		}
		s.wantTasks("a", keys)
	})
}

func TestARequestIsKnownAfterItsHubHasDied(t *testing.T) {
	for _, agent := range []string{"a", "c"} {
		t.Run("the agent is at "+agent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.join(agent, core.Card{ID: "bob"})
				s := newSender(w)
				first, _, err := s.send("a", "k", "why?")
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond) // the agent's hub and the journal have it
				w.net.Kill("a")
				s.want("b", "k", "why?", first)
				s.want("c", "k", "why?", first)
				var end core.Event
				w.until("the task has its end at b", func() bool {
					read, err := w.hubs["b"].Task(t.Context(), core.Principal{ID: "ann"}, first)
					if err == nil {
						end = read.Last()
					}
					return err == nil && (agent == "c" || end.Body.Kind() == core.KindFailed)
				})
			})
		})
	}
}

func TestARequestWhoseHubDiesBeforeItTellsIsFoundInTheJournal(t *testing.T) {
	for _, agent := range []string{"a", "b", "c"} {
		t.Run("the agent is at "+agent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.join(agent, core.Card{ID: "bob"})
				s := newSender(w)
				first, _, err := s.once("a", "k", "why?", func() {
					time.Sleep(100 * time.Millisecond) // the agent's hub and the journal have it
					w.net.Kill("a")
				})
				if err != nil {
					t.Fatal(err)
				}
				s.want("b", "k", "why?", first)
				s.want("c", "k", "why?", first)
			})
		})
	}
}

// Its hub dies, and the hub that has the task cannot store it for a while.
func TestARequestWhoseTaskIsNotStoredYetIsFoundAtItsHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		s := newSender(w)
		w.delayWrites("b", 8*time.Second, nil)
		first, _, err := s.once("a", "k", "why?", func() {
			time.Sleep(100 * time.Millisecond) // the agent's hub has it
			w.net.Kill("a")
		})
		if err != nil {
			t.Fatal(err)
		}
		s.want("c", "k", "why?", first)
		w.delayWrites("b", 0, nil)
	})
}

// A claim is made, and its acknowledgement is lost: its hub gives it up, and so does not keep the others waiting.
func TestAClaimThatItsHubDoesNotKnowOfIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		s := newSender(w)
		claimed := false
		w.keys.After = func() error {
			w.keys.After, claimed = nil, true
			return errors.New("nobody says whether it is stored")
		}
		_, _, err := s.once("a", "k", "why?", func() { t.Error("it was acted on without a claim") })
		if f := core.AsFault(err); f == nil || !f.Retryable || !claimed {
			t.Errorf("got %v and a claim: %t, want a claim, and the request to be sent again", err, claimed)
		}
		first, known, err := s.send("b", "k", "why?")
		if err != nil || known {
			t.Fatalf("got known %t and %v, want a new task", known, err)
		}
		s.want("a", "k", "why?", first)
	})
}

// A request is sent again and again while the store does not take its task: it opens no second one.
func TestATaskThatTheStoreDoesNotHaveYetIsNotOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		s := newSender(w)
		first, _, err := s.once("a", "k", "why?", func() { w.claims.Stall(true) })
		if err != nil {
			t.Fatal(err)
		}
		for _, at := range []string{"a", "b"} {
			_, _, err := s.once(at, "k", "why?", func() { t.Errorf("hub %s has acted on it again", at) })
			if f := core.AsFault(err); f == nil || !f.Retryable {
				t.Errorf("at hub %s: got %v, want it to be sent again", at, err)
			}
		}
		w.claims.Stall(false)
		for _, at := range []string{"a", "b"} {
			s.want(at, "k", "why?", first)
		}
	})
}

// Its hub tells the others of the task, and dies before the journal or the agent's hub has it.
func TestARequestWhoseTaskDiedWithItsHubIsActedOnAgain(t *testing.T) {
	for _, agent := range []string{"a", "c"} {
		t.Run("the agent is at "+agent, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, "a", "b", "c")
				w.join(agent, core.Card{ID: "bob"})
				s := newSender(w)
				other, _, err := s.send("a", "l", "why?")
				if err != nil {
					t.Fatal(err)
				}
				sent := hub.Repeatable{Owner: "ann", Name: "k", Content: sha256.Sum256([]byte("why?"))}
				lost := other[:28] + "00000000" // what comes before says which hubs it is of
				if _, _, err = s.keys["a"].Once(t.Context(), sent, func(string) (core.TaskID, error) { return lost, nil }); err != nil {
					t.Fatal(err)
				}
				time.Sleep(100 * time.Millisecond)
				w.net.Kill("a")
				acted := false
				for range 100 {
					if _, _, err = s.keys["b"].Once(t.Context(), sent, func(string) (core.TaskID, error) { acted = true; return other, nil }); err == nil {
						break
					}
					time.Sleep(100 * time.Millisecond)
				}
				if err != nil || !acted {
					t.Errorf("got acted on %t and %v, want that it was", acted, err)
				}
				s.want("c", "k", "why?", other)
			})
		})
	}
}

func TestARequestWhoseHubDiesBeforeItHasATaskOpensOneElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("b", core.Card{ID: "bob"})
		s := newSender(w)
		acting := make(chan struct{})
		go func() {
			_, _, _ = s.keys["a"].Once(t.Context(), hub.Repeatable{Owner: "ann", Name: "k", Content: sha256.Sum256([]byte("why?"))}, func(string) (core.TaskID, error) {
				w.net.Kill("a")
				close(acting)
				time.Sleep(time.Minute)
				return "", errors.New("the hub is dead")
			})
		}()
		<-acting
		first, known, err := s.send("b", "k", "why?")
		if err != nil || known {
			t.Fatalf("got known %t and %v, want a new task", known, err)
		}
		s.want("c", "k", "why?", first)
		time.Sleep(2 * time.Minute)
		s.want("c", "k", "why?", first)
	})
}

// Another hub died with it, which may have had the task, too.
func TestARequestIsActedOnAgainAfterTwoHubsHaveDied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c", "d", "e")
		w.join("e", core.Card{ID: "bob"})
		s := newSender(w)
		acting := make(chan struct{})
		go func() {
			_, _, _ = s.keys["a"].Once(t.Context(), hub.Repeatable{Owner: "ann", Name: "k", Content: sha256.Sum256([]byte("why?"))}, func(string) (core.TaskID, error) {
				w.net.Kill("a")
				w.net.Kill("d")
				close(acting)
				return "", errors.New("the hub is dead")
			})
		}()
		<-acting
		first, known, err := s.send("b", "k", "why?")
		if err != nil || known {
			t.Fatalf("got known %t and %v, want a new task", known, err)
		}
		s.want("c", "k", "why?", first)
	})
}

func TestAKeyIsFreeAfterItsRequestWasRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		s := newSender(w)
		for _, at := range []string{"a", "b"} {
			if _, _, err := s.once(at, "k", "why?", func() {}); core.AsFault(err).Code != core.CodeUnknownAgent {
				t.Fatalf("at hub %s: got %v, want that nobody is there", at, err)
			}
		}
		w.join("c", core.Card{ID: "bob"})
		if _, known, err := s.send("c", "k", "why?"); err != nil || known {
			t.Errorf("got known %t and %v, want a new task", known, err)
		}
	})
}

func TestAHubThatIsCutOffTakesNoRequestThatMayBeKnownElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("a", core.Card{ID: "bob"})
		s := newSender(w)
		first, _, err := s.send("b", "k", "why?")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		w.net.Isolate("a")
		for _, after := range []time.Duration{0, 10 * time.Second} {
			time.Sleep(after)
			_, _, err := s.once("a", "l", "why?", func() {})
			if f := core.AsFault(err); f == nil || !f.Retryable {
				t.Errorf("after %s: got %v, want it to be sent again", after, err)
			}
		}
		s.want("c", "k", "why?", first)
	})
}

// A client that has hung up frees its key, and keeps nobody waiting.
func TestARequestWhoseSenderHasHungUpMayBeSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, "a", "b", "c")
		w.join("a", core.Card{ID: "bob"})
		s := newSender(w)
		ctx, hangUp := context.WithCancel(t.Context())
		hangUp()
		_, _, err := s.keys["a"].Once(ctx, hub.Repeatable{Owner: "ann", Name: "k", Content: sha256.Sum256([]byte("why?"))}, func(string) (core.TaskID, error) {
			t.Error("it was acted on")
			return "", nil
		})
		if err == nil {
			t.Error("got no error, want one")
		}
		if _, known, err := s.send("b", "k", "why?"); err != nil || known {
			t.Errorf("got known %t and %v, want a new task", known, err)
		}
	})
}
