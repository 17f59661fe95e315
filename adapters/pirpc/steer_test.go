package pirpc_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// cancels cancels a task, and takes what pi gets for it.
func (n *nursery) cancels(t *task.Task, k *kid) command {
	n.Helper()
	synctest.Wait()
	if err := n.user.Cancel(t.ID(), "enough"); err != nil {
		n.Fatal(err)
	}
	c := k.next("clear_queue")
	k.say(`{"type":"response","command":"clear_queue","success":false,"error":"Unknown command: clear_queue"}`)
	if c.ID == "" {
		n.Error("a command without an id")
	}
	return k.next("abort")
}

func TestACancelAbortsTheRun(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(core.Request{Content: "hello", Thread: "A"}), <-n.kids
		k.prompted()
		k.begins()
		k.delta("so f")
		abort := n.cancels(asked, k)
		k.ends("so f", "aborted", `,"errorMessage":"Request was aborted."`)
		k.settles()
		k.accept(abort)
		a := n.wants(asked, core.KindCancelled, "so f")
		if a.Fault.Message != "enough" {
			t.Errorf("got the reason %q, want that of the cancel", a.Fault.Message)
		}
		if n.counts.of("pi-rpc.stray") > 0 {
			t.Error("the answer of an old version to clear_queue counts as stray")
		}
		// The process is as good as before.
		again := n.ask(core.Request{Content: "again", Thread: asked.Thread()})
		if c := k.prompted(); c.Message != "again" {
			t.Errorf("got the prompt %q", c.Message)
		}
		n.finishes(again, k, "ok")
	})
}

func TestACancelThatComesBeforePiHasBegunIsRepeated(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		prompt := k.next("prompt")
		k.accept(n.cancels(asked, k)) // there is nothing to abort yet
		k.is(strings.Replace(idle, `"isStreaming":false`, `"isStreaming":true`, 1))
		k.accept(prompt)
		k.say(`{"type":"agent_start"}`)
		k.next("clear_queue")
		k.accept(k.next("abort"))
		k.begins()
		k.ends("", "aborted", "")
		k.settles()
		n.wants(asked, core.KindCancelled, "")
	})
}

func TestACancelDuringTheWaitOfARetryEndsTheTask(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.begins()
		k.ends("", "error", `,"errorMessage":"503"`)
		k.is(idle)
		k.say(`{"type":"agent_end","messages":[]}`, `{"type":"auto_retry_start","attempt":1,"maxAttempts":3,"delayMs":2000,"errorMessage":"503"}`)
		abort := n.cancels(asked, k)
		k.say(`{"type":"auto_retry_end","success":false,"attempt":1,"finalError":"Retry cancelled"}`)
		k.accept(abort)
		n.wants(asked, core.KindCancelled, "")
	})
}

func TestAnAnswerThatWasCompleteBeforeTheCancelIsDone(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.answers("HELLO")
		abort := n.cancels(asked, k)
		k.settles()
		k.accept(abort)
		n.wants(asked, core.KindDone, "HELLO")
	})
}

func TestAProcessThatIgnoresTheAbortIsEnded(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		n.cancels(asked, k)
		time.Sleep(5 * time.Second)
		n.wants(asked, core.KindCancelled, "")
		if _, open := <-k.commands; open {
			t.Error("got another command, want the end of the process")
		}
	})
}

func TestACancelEndsTheWaitForAProcess(t *testing.T) {
	playWith(t, pirpc.Options{}, nil, func(n *nursery) {
		first, k := n.ask(core.Request{Content: "1", Thread: "t"}), <-n.kids
		k.prompted()
		second := n.ask(core.Request{Content: "2", Thread: "t"}) // waits for the first
		synctest.Wait()
		if err := n.user.Cancel(second.ID(), "enough"); err != nil {
			t.Fatal(err)
		}
		n.wants(second, core.KindCancelled, "")
		n.finishes(first, k, "one")
	})
}

func TestContextIsInjectedBySteeringAndDeferredAfterTheWork(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		prompt := k.next("prompt")
		synctest.Wait()
		inject := func(id, content string, p core.InjectionPriority) {
			if err := n.user.Inject(hub.NoWait, asked.ID(), core.Injected{ID: id, Content: content, Priority: p}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		inject("early", "be brief", core.InjectionImmediate) // waits until pi has the prompt
		k.is(strings.Replace(idle, `"isStreaming":false`, `"isStreaming":true`, 1))
		k.accept(prompt)
		k.say(`{"type":"agent_start"}`)
		c := k.next("steer")
		if c.Message != "be brief" {
			t.Errorf("got %q, want the content alone: who asked has sent it", c.Message)
		}
		k.say(`{"id":"` + c.ID + `","type":"response","command":"steer","success":true,"data":{"disposition":"queued"}}`)
		inject("late", "then thank", core.InjectionDeferred)
		k.accept(k.next("follow_up"))
		chief := n.hub.Connect(hub.Identity{Principal: core.Principal{ID: "chief", Operator: true}})
		defer chief.Close(nil)
		for claimed, want := range map[string]string{"": "[chief] go on", "ci": "[chief (ci)] go on"} {
			if err := chief.Inject(hub.NoWait, asked.ID(), core.Injected{ID: "of chief " + claimed, Content: "go on", Source: claimed}); err != nil {
				t.Fatal(err)
			}
			if c = k.next("steer"); c.Message != want {
				t.Errorf("got %q, want %q", c.Message, want)
			}
			k.accept(c)
		}
		inject("refused", "/reload", core.InjectionNormal)
		c = k.next("steer")
		k.say(`{"id":"` + c.ID + `","type":"response","command":"steer","success":false,"error":"Extension command \"/reload\" cannot be queued."}`)
		inject("unheard", "more", core.InjectionNormal)
		k.next("steer")
		n.finishes(asked, k, "ok")
		answered := slices.DeleteFunc(bodies[core.InjectionAnswered](n, asked), func(a core.InjectionAnswered) bool { return strings.HasPrefix(a.ID, "of chief") })
		want := []core.InjectionAnswered{
			{ID: "early", Accepted: true}, {ID: "late", Accepted: true}, {ID: "refused", Reason: `Extension command "/reload" cannot be queued.`},
			{ID: "unheard", Reason: "the answer was complete before"},
		}
		if len(answered) != len(want) {
			t.Fatalf("got %+v, want %+v", answered, want)
		}
		for i := range want {
			if answered[i] != want[i] {
				t.Errorf("got %+v, want %+v", answered[i], want[i])
			}
		}
	})
}

func TestWhatPiDidNotReadInTimeDoesNotHoldUpTheTask(t *testing.T) {
	play(t, pirpc.Options{}, func(n *nursery) {
		asked, k := n.ask(hello()), <-n.kids
		k.prompted()
		k.answers("ok")
		k.is(strings.Replace(idle, `"pendingMessageCount":0`, `"pendingMessageCount":1`, 1))
		k.say(`{"type":"agent_end","messages":[]}`)
		synctest.Wait()
		n.wants(asked, 0, "ok")
		time.Sleep(2 * time.Second)
		n.wants(asked, core.KindDone, "ok")
		if got := n.counts.of("pi-rpc.injection.unread"); got != 1 {
			t.Errorf("got %d counted, want 1", got)
		}
	})
}
