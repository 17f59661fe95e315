package client_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
)

const (
	begins    = "accepted\nsession_started C\ntext ok\ndone"
	continues = "accepted\ntext ok\ndone"
)

// remembering starts a fake that continues every conversation.
func remembering(t testing.TB) *fake {
	return remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"), chunk("ok"), status("COMPLETED"))
	}})
}

// asks gives the agent a task of a principal in the thread of all tests.
func (r *ran) asks(who core.Principal, want string) {
	r.Helper()
	c := newTurn(r, "x")
	c.from = who
	r.does(c, want)
}

func TestAPrincipalDoesNotContinueTheConversationOfAnother(t *testing.T) {
	f, log := remembering(t), &coretest.MemoryLog{}
	ann, bob := core.Principal{ID: "ann", Authenticated: true}, core.Principal{ID: "bob", Authenticated: true}
	a := run(t, client.Options{URL: f.URL, Sessions: log})
	a.asks(ann, begins)
	a.asks(bob, begins)
	a.asks(core.Principal{}, begins)
	a.asks(ann, continues)
	a.stop()
	<-a.over
	again := run(t, client.Options{URL: f.URL, Sessions: log}) // after a restart of the hub
	again.asks(core.Principal{ID: "eve", Authenticated: true}, begins)
	again.asks(bob, continues)
	again.asks(core.Principal{}, continues)
	for i, call := range f.called() {
		if got, want := strings.Contains(call, `"contextId":"C"`), i == 3 || i > 4; got != want {
			t.Errorf("request %d is %s, which has the context: %t, want %t", i, call, got, want)
		}
	}
}

func TestPrincipalsWhoseIdentityIsNotProvedShareAConversation(t *testing.T) {
	a := run(t, client.Options{URL: remembering(t).URL})
	a.asks(core.Principal{ID: "connection-1"}, begins)
	a.asks(core.Principal{ID: "connection-2"}, continues)
}

func TestAnAgentDoesNotContinueTheConversationsOfAnotherWithItsURL(t *testing.T) {
	f, log := remembering(t), &coretest.MemoryLog{}
	run(t, client.Options{Name: "one", URL: f.URL, Sessions: log}).asks(core.Principal{}, begins)
	run(t, client.Options{Name: "two", URL: f.URL, Sessions: log}).asks(core.Principal{}, begins)
	run(t, client.Options{Name: "one", URL: f.URL, Sessions: log}).asks(core.Principal{}, continues)
}
