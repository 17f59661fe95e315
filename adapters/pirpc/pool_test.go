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
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// turn asks in a thread, and answers with a process.
func (n *nursery) turn(k *kid, thread core.ThreadID, content, answer string) command {
	n.Helper()
	asked := n.ask(core.Request{Content: content, Thread: thread})
	c := k.prompted()
	k.answers(answer)
	k.settles()
	n.wants(asked, core.KindDone, answer)
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
		b.answers("three")
		b.settles()
		n.wants(other, core.KindDone, "three")
		if len(a.commands) > 0 {
			t.Error("the second task of a thread has begun before the end of the first")
		}
		a.answers("one")
		a.settles()
		n.wants(first, core.KindDone, "one")
		a.prompted()
		a.answers("two")
		a.settles()
		n.wants(second, core.KindDone, "two")
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
		b.answers("three")
		b.settles()
		n.wants(again, core.KindDone, "three")
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

// withSession is the state of a process with a session file.
func withSession(file, messages string) string {
	return strings.NewReplacer(`"sessionId":"s"`, `"sessionId":"s","sessionFile":"`+file+`"`, `"messageCount":0`, `"messageCount":`+messages).Replace(idle)
}

func TestASessionOnDiskIsContinuedByAnotherProcess(t *testing.T) {
	files := 0
	playWith(t, pirpc.Options{SessionDir: "/sessions"}, func(k *kid) {
		files++
		k.state = withSession("/sessions/"+string(rune('0'+files))+".jsonl", "0")
	}, func(n *nursery) {
		a := <-n.kids
		if want := []string{"--session-dir", "/sessions"}; !slices.Equal(a.args, want) {
			t.Errorf("got the arguments %q, want %q", a.args, want)
		}
		asked := n.ask(core.Request{Content: "1", Thread: "A"})
		a.prompted()
		a.dies("killed")
		n.fails(asked, core.CodeUnreachable, "killed")

		again := n.ask(core.Request{Content: "2", Thread: "A"})
		b := <-n.kids
		c := b.next("switch_session")
		if c.Path != "/sessions/1.jsonl" {
			t.Errorf("got the session %s, want that of the first process", c.Path)
		}
		b.is(withSession("/sessions/1.jsonl", "2"))
		b.say(`{"id":"` + c.ID + `","type":"response","command":"switch_session","success":true,"data":{"cancelled":false}}`)
		if c := b.prompted(); c.Message != "2" {
			t.Errorf("got the prompt %q, want it alone", c.Message)
		}
		b.answers("two")
		b.settles()
		n.wants(again, core.KindDone, "two")
		if lost := bodies[core.SessionLost](n, again); len(lost) > 0 {
			t.Errorf("got %+v, want the session continued", lost)
		}
	})
}

func TestASessionFileThatIsGoneIsALostSession(t *testing.T) {
	for name, answer := range map[string]string{
		"refused": `"success":false,"error":"no such file"`, "cancelled": `"success":true,"data":{"cancelled":true}`, "empty": `"success":true,"data":{"cancelled":false}`,
	} {
		t.Run(name, func(t *testing.T) {
			playWith(t, pirpc.Options{SessionDir: "/sessions"}, func(k *kid) { k.state = withSession("/sessions/1.jsonl", "0") }, func(n *nursery) {
				a := <-n.kids
				asked := n.ask(core.Request{Content: "1", Thread: "A"})
				a.prompted()
				a.dies("killed")
				n.fails(asked, core.CodeUnreachable, "killed")
				again := n.ask(core.Request{Content: "2", Thread: "A"})
				b := <-n.kids
				c := b.next("switch_session")
				b.say(`{"id":"` + c.ID + `","type":"response","command":"switch_session",` + answer + `}`)
				b.prompted()
				b.answers("two")
				b.settles()
				n.wants(again, core.KindDone, "two")
				if lost := bodies[core.SessionLost](n, again); len(lost) != 1 || lost[0].Reason != "pi could not open its session file" {
					t.Errorf("got %+v, want the session lost", lost)
				}
			})
		})
	}
}

func TestAThreadOfAnotherRequesterIsAnotherSession(t *testing.T) {
	log := &coretest.MemoryLog{}
	opts := pirpc.Options{SessionDir: "/sessions", Sessions: log}
	files := 0
	prepare := func(k *kid) {
		files++
		k.state = withSession("/sessions/"+string(rune('0'+files))+".jsonl", "0")
	}
	const stranger = "ann's secret"
	playWith(t, opts, prepare, func(n *nursery) {
		a := <-n.kids
		asked := n.askAs("ann", core.Request{Content: stranger, Thread: "A"})
		a.prompted()
		synctest.Wait()
		other := n.askAs("bob", core.Request{Content: "what was said?", Thread: "A"})
		b := <-n.kids
		if c := b.prompted(); c.Message != "what was said?" {
			t.Errorf("got the prompt %q, want the question alone", c.Message)
		}
		b.answers("nothing")
		b.settles()
		n.wants(other, core.KindDone, "nothing")
		a.answers("one")
		a.settles()
		n.wants(asked, core.KindDone, "one")
	})
	playWith(t, opts, prepare, func(n *nursery) { // after a restart of the hub
		c := <-n.kids
		n.askAs("ann", core.Request{Content: "2", Thread: "A"})
		if got := c.next("switch_session"); got.Path != "/sessions/1.jsonl" {
			t.Errorf("got %s, want the session of the requester", got.Path)
		}
	})
}

func TestTheSessionOfAThreadIsKnownAfterARestart(t *testing.T) {
	log := &coretest.MemoryLog{}
	for _, record := range []string{"garbage", `{"thread":""}`} { // such as of a later version
		if err := log.Append(t.Context(), []byte(record)); err != nil {
			t.Fatal(err)
		}
	}
	opts := pirpc.Options{SessionDir: "/sessions", Sessions: log}
	playWith(t, opts, func(k *kid) { k.state = withSession("/sessions/1.jsonl", "0") }, func(n *nursery) {
		a := <-n.kids
		asked := n.ask(core.Request{Content: "1", Thread: "A"})
		a.prompted()
		a.answers("one")
		a.settles()
		n.wants(asked, core.KindDone, "one")
	})
	playWith(t, opts, func(k *kid) { k.state = withSession("/sessions/2.jsonl", "0") }, func(n *nursery) {
		b := <-n.kids
		asked := n.ask(core.Request{Content: "2", Thread: "A"})
		if c := b.next("switch_session"); c.Path != "/sessions/1.jsonl" {
			t.Errorf("got %s, want the session of before", c.Path)
		}
		synctest.Wait()
		if err := n.user.Cancel(asked.ID(), ""); err != nil { // while pi opens the session
			t.Fatal(err)
		}
		n.wants(asked, core.KindCancelled, "")
	})
}

func TestWhatOthersSaidInTheThreadComesBeforeThePrompt(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		k := <-n.kids
		n.turn(k, "A", "1", "one")
		// Somebody else answers in the thread.
		other := n.other()
		asked := n.askOf("other", core.Request{Content: "2", Thread: "A"})
		other("two")
		n.wants(asked, core.KindDone, "two")
		c := n.turn(k, "A", "3", "three")
		if want := "Earlier in this conversation:\n\nuser: 2\n\nassistant (other): two\n\nNow:\n\n3"; c.Message != want {
			t.Errorf("got %q, want %q", c.Message, want)
		}
	})
}

func TestATurnThatFellOutOfTheHistoryHidesNoTurn(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		k := <-n.kids
		n.turn(k, "A", "1", "one")
		for _, content := range []string{"2", "3"} { // the history has room for one of them
			other := n.other()
			asked := n.askOf("other", core.Request{Content: content, Thread: "A"})
			other(strings.Repeat("long ", 7000))
			synctest.Wait()
			if end := asked.Answer().End; end != core.KindDone {
				t.Fatalf("got %s, want done", end)
			}
		}
		c := n.turn(k, "A", "4", "four")
		if strings.Contains(c.Message, "one") || !strings.Contains(c.Message, "user: 3\n\nassistant (other): long") {
			t.Errorf("got the prompt %.300q, want what is left of the history", c.Message)
		}
	})
}

func TestATurnThatFailedIsNotToldTheTurnsBeforeItAgain(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		k := <-n.kids
		n.turn(k, "A", "1", "one")
		failed := n.ask(core.Request{Content: "2", Thread: "A"})
		k.prompted()
		k.begins()
		k.ends("", "error", `,"errorMessage":"no model"`)
		k.settles()
		n.fails(failed, core.CodeInternal, "no model")
		if c := n.turn(k, "A", "3", "three"); c.Message != "3" {
			t.Errorf("got the prompt %q, want it without the turn that the session has", c.Message)
		}
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
		if err == nil || !strings.Contains(err.Error(), "did not answer within 20s") || time.Since(begun) != 20*time.Second {
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
		a.answers("ok")
		a.settles()
		n.wants(asked, core.KindDone, "ok")
		if err := <-n.ran; err == nil || !strings.Contains(err.Error(), "exit status 1") {
			t.Errorf("got %v, want the reason", err)
		}
		n.ran <- nil
		late := n.ask(hello())
		n.fails(late, core.CodeUnreachable, "the agent was lost")
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
		k.answers("one")
		k.settles()
		n.wants(asked, core.KindDone, "one")
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
		b.answers("two")
		b.settles()
		n.wants(asked, core.KindDone, "two")
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
