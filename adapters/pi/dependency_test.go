package pi_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// waitsInTurn returns the error of a command in a cycle of dependencies.
func waitsInTurn(id string) string {
	return "Dependency '" + id + "' waits for this command and cannot be awaited from it"
}

func TestACommandThatWaitsForItselfFailsAtOnce(t *testing.T) {
	for _, tt := range []struct {
		name     string
		commands []string
		failed   string // id of the failing command
		on       string // id in the error
		goOn     []string
	}{
		{"through one that overtakes", []string{
			`{"id":"a","type":"set_session_name","sessionId":"s","name":"a","dependsOn":["k"]}`,
			`{"id":"b","type":"set_session_name","sessionId":"s","name":"b"}`,
			`{"id":"k","type":"get_last_assistant_text","sessionId":"s","dependsOn":["b"]}`,
		}, "a", "k", []string{"b", "k"}},
		{"both overtake", []string{
			`{"id":"b","type":"set_session_name","sessionId":"s","name":"b"}`,
			`{"id":"k","type":"get_last_assistant_text","sessionId":"s","dependsOn":["b","l"]}`,
			`{"id":"l","type":"get_last_assistant_text","sessionId":"s","dependsOn":["k"]}`,
		}, "k", "l", []string{"b"}},
		{"through another lane", []string{
			`{"id":"a","type":"set_session_name","sessionId":"s","name":"a","dependsOn":["d"]}`,
			`{"id":"b","type":"set_session_name","sessionId":"s","name":"b"}`,
			`{"id":"c","type":"set_session_name","sessionId":"t","name":"c","dependsOn":["b"]}`,
			`{"id":"d","type":"set_session_name","sessionId":"t","name":"d"}`,
		}, "a", "d", []string{"b", "c", "d"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, s := newServer(t, pi.Options{})
				w := newHeldAgent()
				a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
				c := dial(t, s, pi.ConnOptions{})
				c.open("s", "a")
				c.ok(`{"type":"create_session","sessionId":"t"}`)
				c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
				task := <-w.tasks
				for _, command := range tt.commands {
					c.send(command)
				}
				synctest.Wait()
				began := time.Now()
				a.report(task, core.Done{})
				if f := c.until(`{"id":"` + tt.failed + `","type":"response"`); f.Success || f.Error != waitsInTurn(tt.on) {
					t.Errorf("got %s, want a failure because %s waits for it", f.Raw, tt.on)
				}
				for _, id := range tt.goOn {
					c.until(`{"id":"`+id+`","type":"response"`, `"success":true`)
				}
				if took := time.Since(began); took != 0 {
					t.Errorf("got all responses after %v, want them at once", took)
				}
			})
		})
	}
}

func TestWaitingCommandsAreExecutedAfterTheirClientLeft(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	host, c := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	c.ok(`{"id":"t","type":"create_session","sessionId":"t"}`)
	c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
	task := <-w.tasks
	c.send(`{"id":"n","type":"set_session_name","sessionId":"t","name":"n","dependsOn":["p","t"]}`)
	c.until("command_started", `"n"`)
	c.disconnect()
	a.report(task, core.Done{})
	host.until("command_finished", `"commandId":"n"`, `"success":true`)
}

func TestADependentThatTimedOutIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{Commands: command.Options{CommandTimeout: 20 * time.Second}})
		w := newHeldAgent()
		a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "a")
		c.ok(`{"type":"create_session","sessionId":"t"}`)
		c.send(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`)
		task := <-w.tasks
		for _, tt := range []struct{ command, want string }{
			{`{"type":"get_state","sessionId":"s","dependsOn":["p"]}`, command.TimedOut("get_state", 20*time.Second)},
			{`{"type":"set_session_name","sessionId":"t","name":"n","dependsOn":["p"]}`, command.TimedOut("dependsOn:p", 30*time.Second)},
		} {
			if f := c.doUnlimited(tt.command); f.Error != tt.want {
				t.Errorf("%s: got %q, want %q", tt.command, f.Error, tt.want)
			}
		}
		if n := countsOf(s).Dependents; n != 0 {
			t.Errorf("got %d waiting commands, want none", n)
		}
		a.report(task, core.Done{})
		c.until(`{"id":"p","type":"response"`)
	})
}
