package pi

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// repeats sends a command that succeeds and reports whether it was replayed.
func (c *caller) repeats(command string) bool {
	c.t.Helper()
	return has(c.ok(command), `"replayed":true`)
}

func named(id, name string) string {
	return `{"id":"` + id + `","type":"set_session_name","sessionId":"s","name":"` + name + `"}`
}

func TestTheOldestOutcomesAreForgotten(t *testing.T) {
	for what, o := range map[string]Options{
		"beyond so many of them": {MaxOutcomes: 3}, "beyond so many bytes": {OutcomeBytes: 3 * (knownBytes + 150)},
	} {
		t.Run(what, func(t *testing.T) {
			_, s := newStage(t, o)
			c := dial(t, s, ConnOptions{})
			c.ok(`{"type":"create_session","sessionId":"s"}`)
			for i := range 6 {
				if id := fmt.Sprint(i); c.repeats(named(id, id)) {
					t.Errorf("%d: got a replay, want it done", i)
				}
			}
			if !c.repeats(named("5", "5")) {
				t.Error("the last: got it done again, want a replay")
			}
			if c.repeats(named("0", "0")) {
				t.Error("the first: got a replay, want it forgotten and done")
			}
		})
	}
}

func TestAKeyIsRememberedForItsTimeHoweverManyIDsCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStage(t, Options{MaxOutcomes: 1, KeyTTL: time.Minute})
		c := dial(t, s, ConnOptions{})
		c.ok(`{"type":"create_session","sessionId":"s"}`)
		const keyed = `{"type":"set_session_name","sessionId":"s","name":"x","idempotencyKey":"k"}`
		c.ok(keyed)
		for i := range 5 {
			c.ok(named(fmt.Sprint(i), "y"))
		}
		time.Sleep(time.Minute - time.Second)
		if !c.repeats(keyed) {
			t.Error("within its time: got it done again, want a replay")
		}
		time.Sleep(time.Second)
		if c.repeats(keyed) {
			t.Error("after its time: got a replay, want it done")
		}
	})
}

func TestTheIDsOfAConnectionEndWithIt(t *testing.T) {
	h, s := newStage(t, Options{})
	w := holding()
	a := join(t, h, core.Card{ID: "a"}, w.work)
	host, c := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
	host.ok(`{"type":"create_session","sessionId":"s","agent":"a","idempotencyKey":"host"}`)
	for i := range 5 {
		c.ok(named(fmt.Sprint(i), "x"))
	}
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	task := <-w.tasks
	c.leaves()
	a.say(task, core.Done{})
	host.until("command_finished", `"p"`)
	host.leaves()
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.counts(); n.Outcomes != 1 || n.Keys != 1 || len(s.memory.spaces) != 1 {
		t.Errorf("got %+v in %d spaces, want what has an id and a key alone", n, len(s.memory.spaces))
	}
}

func TestAnIDWithItsKeyIsReplayedOverAnotherConnectionBeyondTheTimeOfTheKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStage(t, Options{})
		const create = `{"id":"1","idempotencyKey":"k","type":"create_session","sessionId":"s"}`
		c := dial(t, s, ConnOptions{})
		c.ok(create)
		c.leaves()
		time.Sleep(time.Hour)
		if !dial(t, s, ConnOptions{}).repeats(create) {
			t.Error("got it done again, want a replay")
		}
	})
}

func TestAReplayedSwitchSubscribesTheConnectionThatAsked(t *testing.T) {
	h, s := newStage(t, Options{})
	join(t, h, core.Card{ID: "a"}, echo)
	one, two := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
	one.ok(`{"type":"create_session","sessionId":"s","agent":"a"}`)
	const subscribe = `{"id":"w","idempotencyKey":"k","type":"switch_session","sessionId":"s"}`
	one.ok(subscribe)
	if !two.repeats(subscribe) {
		t.Fatal("got it done again, want a replay")
	}
	two.ok(`{"type":"prompt","sessionId":"s","message":"hello"}`)
	two.until("agent_end")
	if got := two.transcript("s").Snapshots; got != "you said hello" {
		t.Errorf("got %q told, want the answer", got)
	}
}

func TestTooManyCommandsInFlightAreRefused(t *testing.T) {
	h, s := newStage(t, Options{MaxInFlight: 1})
	join(t, h, core.Card{ID: "mute"}, func(*joined, hub.Batch) {})
	c := dial(t, s, ConnOptions{})
	c.open("s", "mute")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	c.until("command_started", `"p"`)
	c.fails(`{"type":"list_sessions"}`, "Server busy - too many concurrent commands. Please retry.")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	c.until("command_accepted", `"p"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := s.counts(); n.InFlight != 1 || n.Overflown != 1 {
		t.Errorf("got %+v, want one in flight and one refused", n)
	}
}

func TestAPrincipalThatComesBackIsToldWhatCameOfItsCommands(t *testing.T) {
	h, s := newStage(t, Options{})
	w := holding()
	a := join(t, h, core.Card{ID: "a", MaxConcurrent: 4}, w.work)
	as := func(id string) *caller {
		return dial(t, s, ConnOptions{Principal: core.Principal{ID: id, Authenticated: true}})
	}
	ann, bob := as("ann"), as("bob")
	for _, c := range []*caller{ann, bob} { // each counts from 1
		c.ok(`{"id":"1","type":"create_session","sessionId":"s","agent":"a"}`)
		c.send(`{"id":"2","type":"prompt","sessionId":"s","message":"x"}`)
		a.say(<-w.tasks, core.Done{})
		c.until(`{"id":"2","type":"response"`, `"success":true,"sessionVersion":1}`)
	}
	ann.send(`{"id":"3","type":"prompt","sessionId":"s","message":"y"}`)
	task := <-w.tasks
	ann.leaves()
	again := as("ann")
	for _, command := range []string{`{"id":"1","type":"create_session","sessionId":"s","agent":"a"}`, `{"id":"2","type":"prompt","sessionId":"s","message":"x"}`} {
		if !again.repeats(command) {
			t.Errorf("%s: got it done again, want a replay", command)
		}
	}
	again.send(`{"id":"3","type":"prompt","sessionId":"s","message":"y"}`)
	again.until("command_accepted", `"3"`)
	a.say(task, core.Done{})
	again.until(`{"id":"3","type":"response"`, `"success":true,"sessionVersion":2,"replayed":true}`)
	if n := again.count("command_started", `"prompt"`); n != 0 {
		t.Errorf("got %d prompts started, want none again", n)
	}
	if len(w.tasks) != 0 {
		t.Error("the agent was asked again")
	}
}

func TestTheDuplicatesThatWaitAreBounded(t *testing.T) {
	h, s := newStage(t, Options{MaxInFlight: 3})
	w := holding()
	a := join(t, h, core.Card{ID: "a"}, w.work)
	as := ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}
	host := dial(t, s, as)
	host.open("s", "a")
	const asked = `{"id":"p","type":"prompt","sessionId":"s","message":"x"}`
	host.send(asked)
	task := <-w.tasks
	for range 3 { // each comes, asks again and goes: what it waits for goes on
		c := dial(t, s, as)
		c.send(asked)
		c.until("command_accepted", `"p"`)
		c.leaves()
	}
	c := dial(t, s, as)
	c.fails(asked, "Server busy - too many concurrent commands. Please retry.")
	c.ok(`{"type":"list_sessions"}`) // which is none of them
	a.say(task, core.Done{})
	host.until(`"response"`, `"id":"p"`, `"success":true`)
	if !c.repeats(asked) {
		t.Error("behind its end: got it done again, want a replay")
	}
	host.ok(`{"type":"health_check"}`) // it is told behind all of that
	if n := host.count("command_finished", `"p"`, `"replayed":true`); n != 4 {
		t.Errorf("got %d replays finished, want those of the 3 that left and 1 more", n)
	}
}

// What is remembered keeps to its bounds, and every name leads to what has it.
func TestTheMemoryOfCommandsKeepsItsBoundsAndItsOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := newMemory(Options{MaxOutcomes: 5, OutcomeBytes: 20 * knownBytes, KeyTTL: 10 * time.Second})
		now := time.Unix(0, 0)
		var flying []*known
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "seconds")) * time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			case 0:
				m.leave(space{conn: rapid.Uint64Range(1, 3).Draw(t, "leaves")})
			case 1, 2, 3:
				id, key := rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e", "f", "g", "h"}).Draw(t, "id"), rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key")
				k := &known{about: about{name: id, key: key}, names: namesOf(nil, space{conn: rapid.Uint64Range(0, 3).Draw(t, "conn")}, id, key), x: &execution{}}
				if key != "" {
					k.keyed = keyName{"", "s", key}
				}
				if before, conflict := m.find(k, now); before == nil && conflict == "" {
					m.add(k)
					flying = append(flying, k)
				}
			default:
				if len(flying) == 0 {
					continue
				}
				i := rapid.IntRange(0, len(flying)-1).Draw(t, "finishes")
				m.remember(flying[i], response{data: []byte(strings.Repeat("x", rapid.IntRange(0, 9*knownBytes).Draw(t, "bytes")))}, now)
				flying = slices.Delete(flying, i, i+1)
			}
			checkMemory(t, &m)
		}
	})
}

func checkMemory(t *rapid.T, m *memory) {
	held, outcomes := 0, map[*known]bool{}
	for e := m.order.Front(); e != nil; e = e.Next() {
		k := e.Value.(*known)
		held, outcomes[k] = held+k.size, true
		if len(k.names) == 0 && k.keyed == (keyName{}) {
			t.Fatalf("%+v is kept, and nothing leads to it", k.about)
		}
	}
	if held != m.held || held > m.bytes {
		t.Fatalf("got %d bytes held and %d said, want them alike and at most %d", held, m.held, m.bytes)
	}
	for of, line := range m.spaces {
		if len(*line) > m.most || len(*line) == 0 {
			t.Fatalf("got %d outcomes of %v, want 1 to %d", len(*line), of, m.most)
		}
	}
	for _, k := range slices.Concat(slices.Collect(maps.Values(m.ids)), slices.Collect(maps.Values(m.keys))) {
		if k.x == nil && !outcomes[k] {
			t.Fatalf("a name leads to %+v, which is not kept", k.about)
		}
	}
}
