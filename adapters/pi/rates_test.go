package pi_test

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// lifecycles counts the lifecycle events of a command.
func (c *testClient) lifecycles(id string) int {
	return c.count(`{"type":"command_`, `"commandId":"`+id+`"`)
}

func TestCommandsAboveTheRateAreRefusedForAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{Commands: command.Options{Rates: command.Rates{Session: 3, Server: 2, Answers: 1}}})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "") // one command of the server, and one of its session
		c.ok(`{"type":"list_sessions"}`)
		c.fails(`{"id":"x","type":"health_check"}`, "Rate limit exceeded (2 commands/minute)")
		synctest.Wait()
		if got := c.lifecycles("x"); got != 0 {
			t.Errorf("lifecycle events of refused commands: got %d, want 0", got)
		}
		c.ok(`{"type":"get_state","sessionId":"s"}`)
		time.Sleep(30 * time.Second)
		c.ok(`{"type":"get_state","sessionId":"s"}`)
		c.ok(`{"type":"get_state","sessionId":"s"}`)
		for range 3 { // refused commands do not count
			c.fails(`{"type":"get_state","sessionId":"s"}`, "Rate limit exceeded (3 commands/minute)")
		}
		c.fails(`{"type":"get_state","sessionId":"other"}`, "Session other not found") // it has a separate rate
		c.ok(`{"type":"switch_session","sessionId":"s"}`)                              // and so does this
		c.fails(`{"type":"get_state"}`, "Validation failed: sessionId: Session commands must have a non-empty string 'sessionId'")
		time.Sleep(30 * time.Second)
		c.ok(`{"type":"get_state","sessionId":"s"}`)
		c.fails(`{"type":"get_state","sessionId":"s"}`, "Rate limit exceeded (3 commands/minute)")
	})
}

func TestCommandsOfAClientAndAnswersHaveSeparateRates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{Commands: command.Options{Rates: command.Rates{Client: 6, Answers: 1}}})
		c := dial(t, s, pi.ConnOptions{})
		c.open("s", "")
		const answer = `{"type":"extension_ui_response","sessionId":"s","requestId":"r","response":{"method":"cancelled"}}`
		c.fails(answer, "No pending UI request with id r")
		c.fails(answer, "Extension UI response rate limit exceeded (1 responses/minute)")
		for range 3 { // the refused answer was not counted
			c.ok(`{"type":"get_state","sessionId":"s"}`)
		}
		c.fails(`{"type":"get_state","sessionId":"s"}`, "Global rate limit exceeded (6 commands/minute)")
	})
}

func TestAPrincipalCannotUseUpTheRateOfAnother(t *testing.T) {
	_, s := newServer(t, pi.Options{Commands: command.Options{Rates: command.Rates{Client: 1}}})
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	bob := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}})
	again := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	ann.ok(`{"type":"list_sessions"}`)
	again.fails(`{"type":"list_sessions"}`, "Global rate limit exceeded (1 commands/minute)")
	bob.ok(`{"type":"list_sessions"}`)
}

func TestAConnectionOfAnOpenHubCannotUseUpTheRateOfAnother(t *testing.T) {
	_, s := newServer(t, pi.Options{Commands: command.Options{Rates: command.Rates{Client: 250}}})
	greedy, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	greedy.ok(`{"type":"create_session","sessionId":"s"}`)
	for range 99 {
		greedy.ok(`{"type":"list_sessions"}`)
	}
	greedy.fails(`{"type":"create_session","sessionId":"t"}`, "Rate limit exceeded (100 commands/minute)")
	for range 100 {
		greedy.ok(`{"type":"get_state","sessionId":"s"}`)
	}
	greedy.fails(`{"type":"get_state","sessionId":"s"}`, "Rate limit exceeded (100 commands/minute)")
	for i := range 50 {
		greedy.ok(`{"type":"switch_session","sessionId":"s","n":` + strconv.Itoa(i) + `}`)
	}
	greedy.fails(`{"type":"switch_session","sessionId":"s"}`, "Global rate limit exceeded (250 commands/minute)")

	other.ok(`{"type":"create_session","sessionId":"t"}`)
	other.ok(`{"type":"get_state","sessionId":"s"}`)
	other.ok(`{"type":"switch_session","sessionId":"s"}`)
	if f := other.ok(`{"type":"get_metrics"}`); !has(f, `"rateLimitUsage":{"globalCount":4,"globalLimit":250}`) {
		t.Errorf("got %s, want the four commands of this client counted", f.Data)
	}
}

func TestTheHubHasARateIfOneIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{Commands: command.Options{Rates: command.Rates{All: 2}}})
		ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
		bob := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}})
		ann.ok(`{"type":"list_sessions"}`)
		bob.ok(`{"type":"list_sessions"}`)
		bob.fails(`{"type":"list_sessions"}`, "Global rate limit exceeded (2 commands/minute)")
		ann.fails(`{"type":"list_sessions"}`, "Global rate limit exceeded (2 commands/minute)")
		time.Sleep(time.Minute)
		ann.ok(`{"type":"list_sessions"}`)
	})
}
