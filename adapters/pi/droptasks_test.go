package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// disconnect closes the connection and waits until the server has ended it.
func (c *testClient) disconnect() {
	c.Close()
	c.served <- <-c.served
}

func TestTasksEndWithTheirClientIfTasksAreDropped(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}, DropTasks: true, Bash: true})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 4, Features: core.FeatureCancellation}, w.work)
	stays, goes := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	stays.open("shared", "a")
	goes.open("own", "a")
	stays.send(`{"id":"p1","type":"prompt","sessionId":"shared","message":"one"}`)
	first := <-w.tasks
	goes.send(`{"id":"p2","type":"prompt","sessionId":"own","message":"two"}`)
	second := <-w.tasks
	goes.send(`{"id":"p3","type":"prompt","sessionId":"shared","message":"three"}`)
	goes.send(`{"id":"c4","type":"compact","sessionId":"shared"}`)
	goes.send(`{"id":"b5","type":"bash","sessionId":"shared","command":"true"}`)
	goes.ok(`{"type":"get_state","sessionId":"shared"}`) // the server has processed the earlier commands
	goes.disconnect()

	if got, ok := (<-w.requests).(core.CancelRequested); !ok || got.Reason != "the client left" {
		t.Errorf("the running prompt: got %#v, want a cancel because the client left", got)
	}
	a.report(second, core.Cancelled{})
	a.report(first, core.Done{})
	stays.until(`"response"`, `"p1"`, `"success":true`)
	stays.ok(`{"type":"set_session_name","sessionId":"shared","name":"behind what waited"}`)
	for _, id := range []string{"p3", "c4", "b5"} {
		if f := stays.until(`command_finished`, `"`+id+`"`); !has(f, `"error":"the client left"`) {
			t.Errorf("the waiting prompt: got %s, want it not started because the client left", f.Data)
		}
	}
	select {
	case task := <-w.tasks:
		t.Errorf("the waiting prompt: got request %q, want it skipped", task.Request().Content)
	default:
	}
}
