package client_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

// cancelsAt makes a turn cancel once it has reported a kind.
func (t *turn) cancelsAt(k core.Kind) *turn {
	t.reported = func(b core.Body) {
		if b.Kind() == k {
			t.heard <- core.CancelRequested{By: "user", Reason: "enough"}
		}
	}
	return t
}

func TestACancelReachesTheRemoteAndItsEndIsTold(t *testing.T) {
	cancelled := make(chan struct{})
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			x.say(task("WORKING"), chunk("one "))
			<-cancelled
			x.say(chunk("last words"), status("CANCELED"))
		},
		"CancelTask": func(x *exchange) {
			close(cancelled)
			x.result(`{"id":"T","contextId":"C","status":{"state":"TASK_STATE_CANCELED"}}`)
		},
	})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x").cancelsAt(core.KindText), "accepted\nsession_started C\ntext one last words\ncancelled enough")
	if got := f.called()[1]; got != `CancelTask {"tenant":"t 1","id":"T"}` {
		t.Errorf("the client sent %s", got)
	}
}

func TestACancelBeforeTheFirstWordReachesTheRemoteOnceItNamesTheTask(t *testing.T) {
	asked, cancelled := make(chan struct{}), make(chan struct{})
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			close(asked)
			x.raw(": wait\n\n")
			x.say(task("WORKING"))
			<-cancelled
			x.say(status("CANCELED"))
		},
		"CancelTask": func(x *exchange) { close(cancelled); x.result(`{"id":"T","status":{"state":"TASK_STATE_WORKING"}}`) },
	})
	c := newTurn(t, "x")
	c.heard <- core.CancelRequested{By: "user", Reason: "enough"}
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ncancelled enough")
	<-asked
}

func TestARemoteThatIgnoresACancelIsLeftAfterTheGrace(t *testing.T) {
	for name, cancel := range map[string]func(*exchange){
		"refused": func(x *exchange) { x.fails(-32002, "not cancelable") },
		"ignored": func(x *exchange) { x.result(`{"id":"T","status":{"state":"TASK_STATE_WORKING"}}`) },
		"silent":  func(x *exchange) { x.wait() },
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){
				"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")); x.wait() },
				"CancelTask":           cancel,
			})
			a := run(t, client.Options{URL: f.URL, Grace: 20 * time.Millisecond})
			a.does(newTurn(t, "x").cancelsAt(core.KindText), "accepted\nsession_started C\ntext one\ncancelled enough")
		})
	}
}

func TestWhatARemoteSaysToACancelCountsWhereItsStreamDoesNotEnd(t *testing.T) {
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")); x.wait() },
		"CancelTask":           func(x *exchange) { x.result(snapshot("CANCELED", "one two")) },
	})
	a := run(t, client.Options{URL: f.URL, Grace: time.Second})
	a.does(newTurn(t, "x").cancelsAt(core.KindText), "accepted\nsession_started C\ntext one two\ncancelled enough")
}

func TestATaskThatNobodyWaitsForIsCancelledAtTheRemote(t *testing.T) {
	cancelled := make(chan struct{})
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("one ")); x.wait() },
		"CancelTask":           func(x *exchange) { close(cancelled); x.result(`{"id":"T","status":{"state":"TASK_STATE_CANCELED"}}`) },
	})
	a := run(t, client.Options{URL: f.URL})
	ctx, end := context.WithCancelCause(context.Background())
	c := newTurn(t, "x")
	deadline := core.NewFault(core.CodeTimeout, "the deadline passed")
	c.reported = func(b core.Body) {
		if b.Kind() == core.KindText {
			end(deadline)
		}
	}
	if err := a.Work(ctx, c); !errors.Is(err, deadline) {
		t.Errorf("Work: got %v, want the cause of its context", err)
	}
	<-cancelled
	if strings.Contains(c.story(), "done") {
		t.Errorf("it reported:\n%s", c.story())
	}
}
