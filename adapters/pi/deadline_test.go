package pi_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// A command that times out is aborted and answered at once. Its lane waits until the work has
// ended, and its outcome is ignored.
func TestWorkThatTimesOutIsAbortedAndItsLateOutcomeIgnored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{Commands: command.Options{PromptTimeout: 10 * time.Second}})
		aborted := time.Time{}
		engine := s.Parts().Engine
		s.Handle("bash", func(x *command.Execution) command.Outcome {
			x.OnAbort(func() {
				aborted = time.Now()
				time.AfterFunc(5*time.Second, func() { // slow to end
					engine.Lock()
					defer engine.Unlock()
					x.Finish(command.Outcome{Data: strictjson.Encode("late"), After: func() { t.Error("got After called, want it only after a success") }})
				})
			})
			return command.Outcome{Pending: true}
		})
		c := dial(t, s, pi.ConnOptions{})
		c.ok(`{"type":"create_session","sessionId":"s"}`)
		began := time.Now()
		const bash = `{"id":"b","type":"bash","sessionId":"s","command":"sleep"}`
		c.send(bash)
		c.send(`{"id":"n","type":"set_session_name","sessionId":"s","name":"next"}`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if got := aborted.Sub(began); got != 10*time.Second {
			t.Errorf("got an abort after %v, want 10s", got)
		}
		if f := c.until(`"response"`, `"id":"b"`); f.Error != "Command 'bash' timed out after 10000ms" || !f.TimedOut || f.SessionVersion != nil {
			t.Errorf("got %s, want it timed out", f.Raw)
		}
		if c.count("command_started", `"n"`) != 0 {
			t.Error("got the next command started, want it to wait for the end of the work")
		}
		time.Sleep(5 * time.Second)
		if f := c.until(`"response"`, `"id":"n"`); f.SessionVersion == nil || *f.SessionVersion != 1 {
			t.Errorf("got %s, want version 1: the late success does not count", f.Raw)
		}
		if f := c.doUnlimited(bash); f.Error != "Command 'bash' timed out after 10000ms" || !f.TimedOut || !has(f, `"replayed":true`) {
			t.Errorf("got %s, want the timeout replayed", f.Raw)
		}
		if n := c.count("command_finished", `"commandId":"b"`); n != 2 {
			t.Errorf("got %d command_finished, want one and one replayed", n)
		}
	})
}
