package pi_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// repeats sends a command that succeeds and reports whether it was replayed.
func (c *testClient) repeats(command string) bool {
	c.t.Helper()
	return has(c.ok(command), `"replayed":true`)
}

func named(id, name string) string {
	return `{"id":"` + id + `","type":"set_session_name","sessionId":"s","name":"` + name + `"}`
}

func TestTheOldestOutcomesAreForgotten(t *testing.T) {
	for what, o := range map[string]command.Options{
		"beyond so many of them": {MaxOutcomes: 3}, "beyond so many bytes": {OutcomeBytes: 3 * (command.OutcomeOverhead + 150)},
	} {
		t.Run(what, func(t *testing.T) {
			_, s := newServer(t, pi.Options{Commands: o})
			c := dial(t, s, pi.ConnOptions{})
			c.ok(`{"type":"create_session","sessionId":"s"}`)
			for i := range 6 {
				if id := fmt.Sprint(i); c.repeats(named(id, id)) {
					t.Errorf("%d: got a replay, want it executed", i)
				}
			}
			if !c.repeats(named("5", "5")) {
				t.Error("the last: got it executed again, want a replay")
			}
			if c.repeats(named("0", "0")) {
				t.Error("the first: got a replay, want it forgotten and executed")
			}
		})
	}
}

func TestAKeyIsRememberedForItsTTLDespiteManyIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{Commands: command.Options{MaxOutcomes: 1, KeyTTL: time.Minute}})
		c := dial(t, s, pi.ConnOptions{})
		c.ok(`{"type":"create_session","sessionId":"s"}`)
		const keyed = `{"type":"set_session_name","sessionId":"s","name":"x","idempotencyKey":"k"}`
		c.ok(keyed)
		for i := range 5 {
			c.ok(named(fmt.Sprint(i), "y"))
		}
		time.Sleep(time.Minute - time.Second)
		if !c.repeats(keyed) {
			t.Error("within its TTL: got it executed again, want a replay")
		}
		time.Sleep(time.Second)
		if c.repeats(keyed) {
			t.Error("after its TTL: got a replay, want it executed")
		}
	})
}

func TestTheIDsOfAConnectionEndWithIt(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	host, c := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	host.ok(`{"type":"create_session","sessionId":"s","agent":"a","idempotencyKey":"host"}`)
	for i := range 5 {
		c.ok(named(fmt.Sprint(i), "x"))
	}
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	task := <-w.tasks
	c.disconnect()
	a.report(task, core.Done{})
	host.until("command_finished", `"p"`)
	host.disconnect()
	if n := countsOf(s); n.Outcomes != 1 || n.Keys != 1 || n.Namespaces != 1 {
		t.Errorf("got %+v, want only the command with an id and a key", n)
	}
}

func TestAnIDWithItsKeyIsReplayedOnAnotherConnectionAfterTheTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{})
		const create = `{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`
		c := dial(t, s, pi.ConnOptions{})
		c.ok(create)
		c.disconnect()
		time.Sleep(time.Hour)
		if !dial(t, s, pi.ConnOptions{}).repeats(create) {
			t.Error("got it executed again, want a replay")
		}
	})
}

func TestAReplayedSwitchSubscribesItsConnection(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	one, two := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	one.ok(`{"type":"create_session","sessionId":"s","agent":"a"}`)
	const subscribe = `{"id":"w","idempotencyKey":"k","type":"switch_session","sessionId":"s"}`
	one.ok(subscribe)
	if !two.repeats(subscribe) {
		t.Fatal("got it executed again, want a replay")
	}
	two.ok(`{"type":"prompt","sessionId":"s","message":"hello"}`)
	two.until("agent_end")
	if got := two.transcript("s").Snapshots; got != "you said hello" {
		t.Errorf("got text %q, want the answer", got)
	}
}

func TestTooManyCommandsInFlightAreRefused(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{MaxInFlight: 1}})
	joinAgent(t, h, core.Card{ID: "mute"}, func(*testAgent, hub.Batch) {})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "mute")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	c.until("command_started", `"p"`)
	c.fails(`{"type":"list_sessions"}`, "Server busy - too many concurrent commands. Please retry.")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	c.until("command_accepted", `"p"`)
	if n := countsOf(s); n.InFlight != 1 || n.Overflown != 1 {
		t.Errorf("got %+v, want one in flight and one refused", n)
	}
}

func TestAPrincipalThatReconnectsGetsItsOutcomes(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 4}, w.work)
	as := func(id string) *testClient {
		return dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: id, Authenticated: true}})
	}
	ann, bob := as("ann"), as("bob")
	for _, c := range []*testClient{ann, bob} { // each has its own ids from 1
		c.ok(`{"id":"1","type":"create_session","sessionId":"s","agent":"a"}`)
		c.send(`{"id":"2","type":"prompt","sessionId":"s","message":"x"}`)
		a.report(<-w.tasks, core.Done{})
		c.until(`{"id":"2","type":"response"`, `"success":true,"sessionVersion":1}`)
	}
	ann.send(`{"id":"3","type":"prompt","sessionId":"s","message":"y"}`)
	task := <-w.tasks
	ann.disconnect()
	again := as("ann")
	for _, command := range []string{`{"id":"1","type":"create_session","sessionId":"s","agent":"a"}`, `{"id":"2","type":"prompt","sessionId":"s","message":"x"}`} {
		if !again.repeats(command) {
			t.Errorf("%s: got it executed again, want a replay", command)
		}
	}
	again.send(`{"id":"3","type":"prompt","sessionId":"s","message":"y"}`)
	again.until("command_accepted", `"3"`)
	a.report(task, core.Done{})
	again.until(`{"id":"3","type":"response"`, `"success":true,"sessionVersion":2,"replayed":true}`)
	if n := again.count("command_started", `"prompt"`); n != 0 {
		t.Errorf("got %d prompts started, want none by a replay", n)
	}
	if len(w.tasks) != 0 {
		t.Error("the agent was asked again")
	}
}

func TestWaitingDuplicatesAreBounded(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{MaxInFlight: 3}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	as := pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}
	host := dial(t, s, as)
	host.open("s", "a")
	const asked = `{"id":"p","type":"prompt","sessionId":"s","message":"x"}`
	host.send(asked)
	task := <-w.tasks
	for range 3 { // each connects, repeats the command and leaves; the command continues
		c := dial(t, s, as)
		c.send(asked)
		c.until("command_accepted", `"p"`)
		c.disconnect()
	}
	c := dial(t, s, as)
	c.fails(asked, "Server busy - too many concurrent commands. Please retry.")
	c.ok(`{"type":"list_sessions"}`) // not a duplicate
	a.report(task, core.Done{})
	host.until(`"response"`, `"id":"p"`, `"success":true`)
	if !c.repeats(asked) {
		t.Error("after its end: got it executed again, want a replay")
	}
	host.ok(`{"type":"health_check"}`) // its response follows all of them
	if n := host.count("command_finished", `"p"`, `"replayed":true`); n != 4 {
		t.Errorf("got %d replays finished, want those of the 3 that left and 1 more", n)
	}
}
