package pi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

func TestCommandsBeyondTheInFlightLimitAreRefused(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{MaxInFlight: 1, QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"hello"}`)
	task := <-w.tasks
	other.fails(`{"id":"x","type":"list_sessions"}`, "Server busy - too many concurrent commands. Please retry.")
	if got := other.lifecycles("x"); got != 0 {
		t.Errorf("lifecycle events of refused commands: got %d, want 0", got)
	}
	a.report(task, core.Done{})
	c.until(`"response"`, `"id":"p"`, `"success":true`)
	other.ok(`{"type":"list_sessions"}`)
}

func TestWaitingFramesAreBoundedInBytes(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{InFlightBytes: 1_000_000, QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	large := func(id string) string {
		return `{"id":"` + id + `","type":"prompt","sessionId":"s","message":"hello","unknown":"` + strings.Repeat("x", 600_000) + `"}`
	}
	c.send(large("1")) // a running command releases its frame
	first := <-w.tasks
	c.send(large("2"))
	c.until("command_accepted", `"2"`)
	c.send(large("3"))
	if f := c.until(`"response"`, `"id":"3"`); f.Error != command.TooManyInFlight {
		t.Errorf("above the bound: got %s, want it refused", f.Raw)
	}
	c.ok(`{"type":"steer","sessionId":"s","message":"small"}`)
	a.report(first, core.Done{})
	a.report(<-w.tasks, core.Done{}) // what steered
	c.until(`"response"`, `"id":"1"`, `"success":true`)
	a.report(<-w.tasks, core.Done{})
	c.until(`"response"`, `"id":"2"`, `"success":true`)
	if n := countsOf(s).InFlightBytes; n != 0 {
		t.Errorf("at the end: got %d bytes in flight, want 0", n)
	}
}

func TestASessionExpiresButNotDuringARun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{Commands: command.Options{PromptTimeout: 3 * time.Hour}, SessionLifetime: time.Hour})
		w := newHeldAgent()
		a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("idle", "a")
		c.open("busy", "a")
		time.Sleep(59 * time.Minute)
		c.send(`{"id":"p","type":"prompt","sessionId":"busy","message":"hello"}`)
		task := <-w.tasks
		time.Sleep(time.Minute)
		synctest.Wait()
		c.until(`{"type":"session_deleted","data":{"sessionId":"idle"}}`)
		c.fails(`{"type":"get_state","sessionId":"idle"}`, "Session idle not found")
		a.report(task, core.Done{})
		c.until(`"response"`, `"id":"p"`, `"success":true`)
		c.ok(`{"type":"get_state","sessionId":"busy"}`)
		time.Sleep(time.Minute)
		synctest.Wait()
		c.until(`{"type":"session_deleted","data":{"sessionId":"busy"}}`)
		if got := sessionsOf(t, c); got != "" {
			t.Errorf("sessions: got %q, want none", got)
		}
	})
}

func TestASessionWithoutALifetimeDoesNotExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{SessionLifetime: -1})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "")
		time.Sleep(1000 * time.Hour)
		c.ok(`{"type":"get_state","sessionId":"s"}`)
	})
}
