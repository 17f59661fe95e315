package pirpc_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// turn asks in a thread, and answers with a process.
func (n *nursery) turn(k *kid, thread core.ThreadID, content, answer string) command {
	n.Helper()
	asked := n.ask(core.Request{Content: content, Thread: thread})
	c := k.prompted()
	n.finishes(asked, k, answer)
	return c
}

func TestAThreadKeepsItsProcessAndAnotherGetsTheWarmOne(t *testing.T) {
	play(t, pirpc.Options{Warm: 1}, func(n *nursery) {
		a := <-n.kids
		n.turn(a, "A", "1", "one")
		b := <-n.kids // was started when the first was taken
		n.turn(b, "B", "2", "two")
		if c := n.turn(a, "A", "3", "three"); c.Message != "3" {
			t.Errorf("got the prompt %q, want it without history: the session has it", c.Message)
		}
		<-n.kids
		if len(n.kids) > 0 {
			t.Error("got more processes than two threads and a warm one")
		}
	})
}

func TestTheTasksOfAThreadRunOneAfterTheOtherThoseOfTwoBeside(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		first := n.ask(core.Request{Content: "1", Thread: "A"})
		a := <-n.kids
		a.prompted()
		synctest.Wait() // until the next is ready
		second := n.ask(core.Request{Content: "2", Thread: "A"})
		other := n.ask(core.Request{Content: "3", Thread: "B"})
		b := <-n.kids
		b.prompted()
		n.finishes(other, b, "three")
		if len(a.commands) > 0 {
			t.Error("the second task of a thread has begun before the end of the first")
		}
		n.finishes(first, a, "one")
		a.prompted()
		n.finishes(second, a, "two")
	})
}

func TestAProcessThatDiesFailsItsTaskAndTheThreadGoesOn(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		a := <-n.kids
		n.turn(a, "A", "1", "one")
		asked := n.ask(core.Request{Content: "2", Thread: "A"})
		a.prompted()
		a.begins()
		a.delta("tw")
		a.dies("exit status 137")
		n.fails(asked, core.CodeUnreachable, "exit status 137")
		if !asked.Answer().Fault.Retryable || asked.Answer().Text != "tw" {
			t.Errorf("got %+v, want it retryable, with what was said", asked.Answer())
		}
		again := n.ask(core.Request{Content: "3", Thread: "A"})
		b := <-n.kids
		c := b.prompted()
		if want := "Earlier in this conversation:\n\nuser: 1\n\nassistant (pi): one\n\n"; !strings.HasPrefix(c.Message, want) || !strings.HasSuffix(c.Message, "Now:\n\n3") {
			t.Errorf("got the prompt %q, want the history and 3", c.Message)
		}
		n.finishes(again, b, "three")
		if lost := bodies[core.SessionLost](n, again); len(lost) != 1 || n.counts.of("pi-rpc.session.lost") != 1 {
			t.Errorf("got %+v, want the session lost", lost)
		}
	})
}

func TestTheEndOfStdoutInATaskFailsIt(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		_ = k.conn.Close(link.Reason{Cause: link.Normal})
		n.fails(asked, core.CodeUnreachable, "pi ended in the middle of the task: the process ended")
	})
}

func TestAProcessThatCannotBeStartedEndsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{T: t, refuse: errors.New("no such program")}
		a := pirpc.New(pirpc.Options{Dial: n.dial, Warm: 2})
		if err := a.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no such program") {
			t.Errorf("got %v, want the reason", err)
		}
		if err := a.Work(t.Context(), nil); core.AsFault(err).Code != core.CodeUnreachable {
			t.Errorf("work after that: got %v, want unreachable", err)
		}
	})
}

func TestAProcessThatNeverAnswersEndsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{T: t, kids: make(chan *kid, 9), prepare: func(k *kid) { k.mute = true }}
		a := pirpc.New(pirpc.Options{Dial: n.dial, StartTimeout: 20 * time.Second})
		begun := time.Now()
		err := a.Run(t.Context(), nil)
		if err == nil || !strings.Contains(err.Error(), "did not answer within 20s: see whether its command has --mode rpc") || time.Since(begun) != 20*time.Second {
			t.Errorf("got %v after %s, want it after 20s", err, time.Since(begun))
		}
	})
}

func TestAWarmProcessThatDiesEndsTheAgentOnceItsTasksAreDone(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, a := n.ask(hello()), <-n.kids
		a.prompted()
		warm := <-n.kids
		synctest.Wait()
		warm.dies("exit status 1")
		synctest.Wait()
		if len(n.kids) > 0 {
			t.Error("got another process at once, want that left to the supervisor")
		}
		n.finishes(asked, a, "ok")
		if err := <-n.ran; err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("got %v, want the reason", err)
		}
		n.ran <- nil
		late := n.ask(hello())
		n.fails(late, core.CodeUnreachable, "the agent was lost")
	})
}

func TestATaskThatComesWhileTheAgentIsLostHasAProcessStartedForIt(t *testing.T) {
	told, goOn := make(chan error, 1), make(chan struct{})
	play(t, pirpc.Options{Lost: func(why error) {
		told <- why
		<-goOn
	}}, func(n *nursery) {
		warm := <-n.kids
		warm.dies("exit status 1")
		why := <-told
		asked := n.ask(hello())
		k := <-n.kids
		close(goOn)
		k.prompted()
		synctest.Wait()
		if len(n.ran) > 0 {
			t.Error("the agent has ended with a task, want it to wait")
		}
		n.finishes(asked, k, "ok")
		if again, ran := <-told, <-n.ran; !errors.Is(ran, why) || !errors.Is(again, why) || !strings.Contains(why.Error(), "exit status 1") {
			t.Errorf("got lost %v, then %v, ended by %v, want the reason", why, again, ran)
		}
		n.ran <- nil
	})
}

// Run is told that the pool has drained while it is not looking, and a task comes until it looks.
func TestAnAgentIsNotLostWhoseTaskHasStartedAnotherProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &nursery{T: t, kids: make(chan *kid, 9)}
		lost, joined, goOn, ran := make(chan error, 1), make(chan struct{}), make(chan struct{}), make(chan error, 1)
		n.agent = pirpc.New(pirpc.Options{Dial: n.dial, Lost: func(why error) { lost <- why }})
		n.hub = coretest.NewHub(t, hub.Options{})
		n.session = n.hub.Connect(hub.Identity{Principal: core.Principal{ID: "pi"}, Dialect: pirpc.Name})
		n.user = n.hub.Connect(hub.Identity{Principal: core.Principal{ID: "user"}, Dialect: "test"})
		n.events = map[core.TaskID][]core.Event{}
		go n.watch()
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			ran <- n.agent.Run(ctx, func(agent.Profile) {
				close(joined)
				<-goOn
			})
		}()
		<-joined
		if err := n.session.Join(core.Card{ID: "pi", MaxConcurrent: 4}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		served := make(chan struct{})
		go func() {
			defer close(served)
			_ = coretest.Serve(ctx, n.session, n.agent, nil)
		}()
		warm := <-n.kids
		warm.dies("exit status 1")
		synctest.Wait()
		asked := n.ask(hello())
		k := <-n.kids
		k.prompted()
		n.finishes(asked, k, "ok")
		close(goOn)
		synctest.Wait()
		if len(lost)+len(ran) > 0 {
			t.Errorf("got %d times lost and ended %d times, want that the agent goes on", len(lost), len(ran))
		}
		stop()
		<-served
		<-ran
		n.session.Close(nil)
		n.user.Close(nil)
	})
}

func TestIdleProcessesEndAfterAWhileAndBeyondTheirNumber(t *testing.T) {
	play(t, pirpc.Options{MaxSessions: 2, IdleAfter: time.Minute}, func(n *nursery) {
		var kids []*kid
		for _, thread := range []core.ThreadID{"A", "B", "C"} {
			k := <-n.kids
			kids = append(kids, k)
			n.turn(k, thread, "1", "one")
			time.Sleep(time.Second)
		}
		ended := func() (all []bool) {
			synctest.Wait()
			for _, k := range kids {
				select {
				case _, open := <-k.commands:
					all = append(all, !open)
				default:
					all = append(all, false)
				}
			}
			return all
		}
		if got := ended(); !slices.Equal(got, []bool{true, false, false}) {
			t.Errorf("three threads: got %v ended, want the oldest", got)
		}
		n.turn(kids[1], "B", "2", "two")
		time.Sleep(time.Minute - time.Second)
		if got := ended(); !slices.Equal(got, []bool{true, false, true}) {
			t.Errorf("a minute later: got %v ended, want all but the one in use", got)
		}
		time.Sleep(time.Second)
		if got := ended(); !slices.Equal(got, []bool{true, true, true}) {
			t.Errorf("later still: got %v ended, want all", got)
		}
		if got := n.counts.of("pi-rpc.session.evicted"); got != 1 {
			t.Errorf("got %d evicted, want 1", got)
		}
	})
}

func TestATaskWithoutAThreadLeavesNoProcess(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(core.Request{Content: "1"}), <-n.kids
		k.prompted()
		n.finishes(asked, k, "one")
		select {
		case c, open := <-k.commands:
			if open {
				t.Errorf("got %+v, want the process ended", c)
			}
		default:
			t.Error("the process waits for the next task of a thread that has one")
		}
	})
}

func TestAProcessThatAnExtensionKeepsBusyIsNotUsed(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		a := <-n.kids
		n.turn(a, "A", "1", "one")
		a.say(`{"type":"agent_start"}`)
		synctest.Wait()
		asked := n.ask(core.Request{Content: "2", Thread: "A"})
		b := <-n.kids
		b.prompted()
		n.finishes(asked, b, "two")
	})
}

func TestTheEndOfTheAgentFailsWhatRuns(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		synctest.Wait()
		if err := n.end(); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want the end of the context", err)
		}
		n.fails(asked, core.CodeUnreachable, "")
	})
}
