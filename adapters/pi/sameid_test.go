package pi_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestCreatingASessionThatIsRunningFailsAtOnce(t *testing.T) {
	dir := t.TempDir()
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a"}, w.work)
	first, again := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	first.open("s", "a")
	first.send(`{"id":"p1","type":"prompt","sessionId":"s","message":"one"}`)
	task := <-w.tasks
	first.send(`{"id":"p2","type":"prompt","sessionId":"s","message":"two"}`)
	first.send(`{"id":"waits","type":"create_session","sessionId":"s","dependsOn":["p1"]}`)
	first.until(`command_accepted`, `"waits"`)
	again.fails(`{"type":"create_session","sessionId":"s"}`, "Session s already exists")
	again.fails(`{"type":"create_session","sessionId":"s","cwd":"`+dir+`"}`, "Session s already exists")
	again.fails(`{"type":"load_session","sessionId":"s","sessionPath":"/nowhere.jsonl"}`, "Session s already exists")
	if again.count(`command_started`, `"waits"`) > 0 {
		t.Errorf("a create_session that depends on another went beside its lane:\n%s", again.log())
	}
	a.report(task, core.Done{})
	a.report(<-w.tasks, core.Done{})
	first.until(`"response"`, `"waits"`, `Session s already exists`)
}

func TestASessionToBeDeletedIsCreatedAgainInItsTurn(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 2, Features: core.FeatureCancellation}, w.work)
	c := dial(t, s, pi.ConnOptions{})
	for _, session := range []string{"s", "t"} {
		c.open(session, "a")
		c.send(`{"id":"in ` + session + `","type":"prompt","sessionId":"` + session + `","message":"go on"}`)
	}
	tasks := map[core.ThreadID]core.TaskID{}
	for range 2 {
		task := <-w.tasks
		tasks[task.Request().Thread] = task.ID()
	}
	c.send(`{"id":"delete","type":"delete_session","sessionId":"s","dependsOn":["in t"]}`)
	c.send(`{"id":"create","type":"create_session","sessionId":"s"}`)
	c.until(`command_accepted`, `"create"`)
	threads := map[string]core.ThreadID{}
	for _, session := range []string{"s", "t"} {
		var state struct{ Thread core.ThreadID }
		if err := json.Unmarshal(c.ok(`{"type":"get_state","sessionId":"`+session+`"}`).Data, &state); err != nil {
			t.Fatal(err)
		}
		threads[session] = state.Thread
	}
	for _, session := range []string{"t", "s"} { // the delete follows the first and cancels the second
		if err := a.Report(tasks[threads[session]], core.Done{}, nil); err != nil {
			t.Errorf("ending the run in %s: %v", session, err)
		}
		if session == "t" {
			c.until(`"response"`, `"delete"`, `"success":true`)
		}
	}
	if f := c.until(`"response"`, `"create"`); !f.Success {
		t.Errorf("after the delete: got error %q, want the session created", f.Error)
	}
}

func TestCommandsForADeletedSessionDoNotReachItsSuccessor(t *testing.T) {
	dir := conversation.Resolve(t.TempDir())
	h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}, SessionDir: dir})
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 2}, w.work)
	goes, stays := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	goes.open("s", "a")
	goes.open("t", "a")
	goes.send(`{"id":"filed","type":"prompt","sessionId":"s","message":"for the file"}`)
	a.report(<-w.tasks, core.Done{})
	goes.until(`"response"`, `"filed"`)
	var state struct{ SessionFile string }
	if err := json.Unmarshal(goes.ok(`{"type":"get_state","sessionId":"s"}`).Data, &state); err != nil {
		t.Fatal(err)
	}
	goes.send(`{"id":"in t","type":"prompt","sessionId":"t","message":"something else"}`)
	elsewhere := <-w.tasks
	goes.send(`{"id":"running","type":"prompt","sessionId":"s","message":"one"}`)
	running := <-w.tasks
	goes.send(`{"id":"late prompt","type":"prompt","sessionId":"s","message":"two"}`)
	for _, kind := range []string{"steer", "abort", "get_state", "switch_session", "delete_session"} {
		goes.send(`{"id":"late ` + kind + `","type":"` + kind + `","sessionId":"s","dependsOn":["in t"],"message":"not here"}`)
	}
	goes.send(`{"id":"late name","type":"set_session_name","sessionId":"s","name":"not this"}`)
	stays.until(`command_accepted`, `"late name"`)
	goes.disconnect()

	stays.ok(`{"type":"delete_session","sessionId":"s"}`)
	stays.ok(`{"type":"load_session","sessionPath":"` + state.SessionFile + `"}`) // as s again, in the lane of the server
	before := stays.ok(`{"type":"get_state","sessionId":"s"}`)
	a.report(elsewhere, core.Done{})
	_ = a.Report(running.ID(), core.Done{}, nil) // it was cancelled and may have ended
	stays.until(`command_finished`, `"late name"`)
	for _, f := range stays.received() {
		if f.Type == "command_finished" && has(f, `"commandId":"late `) && !has(f, "Session s not found") {
			t.Errorf("a command for the earlier session: got %s, want it not found", f.Data)
		}
	}
	after := stays.ok(`{"type":"get_state","sessionId":"s"}`)
	if string(after.Data) != string(before.Data) || *after.SessionVersion != 0 {
		t.Errorf("the next session: got version %d and\n%s, want it unchanged\n%s", *after.SessionVersion, after.Data, before.Data)
	}
	select {
	case task := <-w.tasks:
		t.Errorf("got request %q, want none", task.Request().Content)
	default:
	}
}
