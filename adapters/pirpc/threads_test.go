package pirpc_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

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
		n.finishes(again, b, "two")
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
				n.finishes(again, b, "two")
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
		n.finishes(other, b, "nothing")
		n.finishes(asked, a, "one")
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
		n.finishes(asked, a, "one")
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

func TestATurnThatWasAskedWhileAnotherRanIsPromptedWithoutTheEarlierOnes(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		k := <-n.kids
		n.turn(k, "A", "first", "one")
		for range 2 {
			running := n.ask(core.Request{Content: "running", Thread: "A"})
			k.prompted()
			next := n.ask(core.Request{Content: "next", Thread: "A"})
			synctest.Wait()
			n.finishes(running, k, "two")
			if c := k.prompted(); c.Message != "next" {
				t.Errorf("got the prompt %q, want it alone: the session has all turns before", c.Message)
			}
			n.finishes(next, k, "three")
		}
	})
}
