package pi_test

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// sessionsOf returns the ids of the live sessions, in order.
func sessionsOf(t *testing.T, c *testClient) string {
	t.Helper()
	var data struct {
		Sessions []struct{ SessionID string }
	}
	if err := json.Unmarshal(c.ok(`{"type":"list_sessions"}`).Data, &data); err != nil {
		t.Fatal(err)
	}
	ids := make([]string, len(data.Sessions))
	for i, info := range data.Sessions {
		ids[i] = info.SessionID
	}
	return strings.Join(ids, " ")
}

func TestAClientAtItsSessionLimitEvictsNoneOfAnother(t *testing.T) {
	for name, other := range map[string]pi.ConnOptions{"on an open hub": {}, "of another principal": ann} {
		t.Run(name, func(t *testing.T) {
			_, s := newServer(t, pi.Options{MaxSessions: 3})
			greedy, c := dial(t, s, pi.ConnOptions{}), dial(t, s, other)
			for i := range 3 {
				greedy.open("greedy-"+strconv.Itoa(i), "")
			}
			greedy.fails(`{"type":"create_session","sessionId":"one-more"}`, "Session limit reached (3 sessions)")
			for i := range 3 {
				c.open("s"+strconv.Itoa(i), "")
			}
			c.fails(`{"type":"create_session","sessionId":"one-more"}`, "Session limit reached (3 sessions)")
			if n := greedy.count("session_deleted"); n != 0 {
				t.Errorf("got %d deleted sessions with subscribers, want none", n)
			}
		})
	}
}

func TestTheTotalNumberOfSessionsIsLimited(t *testing.T) {
	_, s := newServer(t, pi.Options{MaxSessions: 3, AllSessions: 4})
	a, b := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	for i := range 3 {
		a.open("a"+strconv.Itoa(i), "")
	}
	b.ok(`{"type":"create_session","sessionId":"b0"}`)
	b.ok(`{"type":"create_session","sessionId":"b1"}`) // evicts the one before
	if got, want := sessionsOf(t, b), "a0 a1 a2 b1"; got != want {
		t.Errorf("got the sessions %q, want %q", got, want)
	}
	b.ok(`{"type":"switch_session","sessionId":"b1"}`)
	b.fails(`{"type":"create_session","sessionId":"b2"}`, "Session limit reached (4 sessions)")
}

func TestAScriptCreatesThreeHundredSessions(t *testing.T) {
	for name, oneConnection := range map[string]bool{"over one connection": true, "over a connection each": false} {
		t.Run(name, func(t *testing.T) {
			h, s := newServer(t, pi.Options{SessionDir: t.TempDir()})
			joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
			c := dial(t, s, pi.ConnOptions{})
			script := c
			for i := range 300 {
				if !oneConnection {
					script = dial(t, s, pi.ConnOptions{})
				}
				id := fmt.Sprintf("s%03d", i)
				script.ok(`{"type":"create_session","sessionId":"` + id + `","agent":"a"}`)
				script.ok(`{"type":"prompt","sessionId":"` + id + `","message":"hello from ` + id + `"}`)
				if !oneConnection {
					script.Close()
					script.served <- <-script.served
				}
			}
			if got := strings.Fields(sessionsOf(t, c)); len(got) != 100 || got[0] != "s200" || got[99] != "s299" {
				t.Errorf("got %d live sessions from %v on, want the last hundred", len(got), got[:1])
			}
			c.until(`{"type":"session_deleted","data":{"sessionId":"s000"}}`)
			var stored struct {
				Sessions []conversation.StoredInfo `json:"sessions"`
			}
			if err := json.Unmarshal(c.ok(`{"type":"list_stored_sessions"}`).Data, &stored); err != nil || len(stored.Sessions) != 300 {
				t.Fatalf("got %d stored sessions and %v, want all 300", len(stored.Sessions), err)
			}

			// Switching to a parked session restores it with its messages.
			if f := c.ok(`{"type":"switch_session","sessionId":"s000"}`); *f.SessionVersion != 1 || !has(f, `"messageCount":2`) {
				t.Errorf("got %s, want the session unchanged", f.Raw)
			}
			c.ok(`{"type":"prompt","sessionId":"s000","message":"still here?"}`)
			said := messagesOf(t, c, "s000")
			if len(said) != 4 || !strings.Contains(string(said[0].JSON), "hello from s000") || !strings.Contains(string(said[3].JSON), "you said still here?") {
				t.Errorf("got %d messages, want the earlier and the new ones", len(said))
			}
			// Loading its file also restores it.
			for _, info := range stored.Sessions {
				if info.SessionID == "s001" {
					c.ok(string(strictjson.Encode(map[string]string{"type": "load_session", "sessionPath": info.SessionPath})))
				}
			}
			if said := messagesOf(t, c, "s001"); len(said) != 2 {
				t.Errorf("got %d messages of a loaded session, want 2", len(said))
			}
		})
	}
}

// A session that cannot be restored is not parked. The least recently used goes first.
func TestOnlyIdleSessionsThatCanBeRestoredAreParked(t *testing.T) {
	for name, tt := range map[string]struct {
		dir  bool
		keep func(c *testClient, w *heldAgent) // of the session "old"
	}{
		"one with a subscriber": {true, func(c *testClient, _ *heldAgent) { c.ok(`{"type":"switch_session","sessionId":"old"}`) }},
		"one at work": {true, func(c *testClient, w *heldAgent) {
			c.send(`{"id":"p","type":"prompt","sessionId":"old","message":"x"}`)
			<-w.tasks
		}},
		"one with something to say": {true, func(c *testClient, _ *heldAgent) { c.ok(`{"type":"follow_up","sessionId":"old","message":"x"}`) }},
		"a conversation in memory":  {false, func(c *testClient, _ *heldAgent) { c.ok(`{"type":"prompt","sessionId":"old","message":"/help"}`) }},
		"one that moved in its tree": {true, func(c *testClient, _ *heldAgent) {
			c.ok(`{"type":"prompt","sessionId":"old","message":"/help"}`)
			var tree struct {
				Nodes []struct {
					EntryID string `json:"entryId"`
				} `json:"nodes"`
			}
			_ = json.Unmarshal(c.ok(`{"type":"get_tree","sessionId":"old"}`).Data, &tree)
			c.ok(`{"type":"navigate_tree","sessionId":"old","targetId":"` + tree.Nodes[0].EntryID + `"}`)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			opts := pi.Options{Commands: command.Options{QueuePrompts: true}, MaxSessions: 2}
			if tt.dir {
				opts.SessionDir = t.TempDir()
			}
			h, s := newServer(t, opts)
			w := newHeldAgent()
			joinAgent(t, h, core.Card{ID: "a"}, w.work)
			c := dial(t, s, pi.ConnOptions{})
			c.ok(`{"type":"create_session","sessionId":"old","agent":"a"}`)
			tt.keep(c, w)
			c.ok(`{"type":"create_session","sessionId":"new"}`)
			c.ok(`{"type":"create_session","sessionId":"newer"}`)
			if got, want := sessionsOf(t, c), "newer old"; got != want {
				t.Errorf("got the sessions %q, want %q", got, want)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{MaxSessions: 2})
		c := dial(t, s, pi.ConnOptions{})
		for _, command := range []string{
			`{"type":"create_session","sessionId":"first"}`, `{"type":"create_session","sessionId":"second"}`,
			`{"type":"get_state","sessionId":"first"}`, `{"type":"create_session","sessionId":"third"}`,
		} {
			time.Sleep(time.Second)
			c.ok(command)
		}
		if got, want := sessionsOf(t, c), "first third"; got != want {
			t.Errorf("got the sessions %q, want %q", got, want)
		}
	})
}

func TestAParkedSessionIsRestoredByTheNextCommandThatNamesIt(t *testing.T) {
	for name, dir := range map[string]string{"from its file": t.TempDir(), "of which nothing was said": ""} {
		t.Run(name, func(t *testing.T) {
			h, s := newServer(t, pi.Options{MaxSessions: 1, SessionDir: dir})
			joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
			c := dial(t, s, pi.ConnOptions{})
			begin := func(id string) {
				c.ok(`{"type":"create_session","sessionId":"` + id + `","agent":"capability:x"}`)
				c.ok(`{"type":"set_session_name","sessionId":"` + id + `","name":"mine"}`)
				c.ok(`{"type":"set_auto_retry","sessionId":"` + id + `","enabled":false}`)
				if dir != "" {
					c.ok(`{"type":"prompt","sessionId":"` + id + `","message":"/help"}`)
				}
			}
			begin("s")
			before := c.ok(`{"type":"get_state","sessionId":"s"}`)
			c.ok(`{"type":"create_session","sessionId":"t"}`)
			after := c.ok(`{"type":"get_state","sessionId":"s"}`)
			if *after.SessionVersion != *before.SessionVersion || !has(after, `"sessionName":"mine"`) {
				t.Errorf("got %s, want the session unchanged: %s", after.Raw, before.Raw)
			}
			if got, want := sessionsOf(t, c), "s"; got != want {
				t.Errorf("got the sessions %q, want %q: the other was evicted", got, want)
			}
			c.ok(`{"type":"create_session","sessionId":"t2"}`)
			c.ok(`{"type":"delete_session","sessionId":"s"}`)
			c.fails(`{"type":"get_state","sessionId":"s"}`, "Session s not found")

			begin("u")
			c.ok(`{"type":"create_session","sessionId":"t3"}`)
			work, requests := failingFirst([]core.Body{overloadedFault})
			joinAgent(t, h, core.Card{ID: "b", Capabilities: []string{"x"}}, work)
			if c.ok(`{"type":"prompt","sessionId":"u","message":"hello"}`); *requests != 1 {
				t.Errorf("got %d requests to the agent with capability x, want one, from the session without retries", *requests)
			}
		})
	}
}

func TestParkingIsAnnouncedAndFreesTheName(t *testing.T) {
	_, s := newServer(t, pi.Options{MaxSessions: 1})
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"type":"create_session","sessionId":"s"}`)
	c.ok(`{"type":"set_session_name","sessionId":"s","name":"mine"}`)
	c.ok(`{"type":"create_session","sessionId":"t"}`)
	c.until(`{"type":"session_deleted","data":{"sessionId":"s"}}`)
	if f := c.ok(`{"type":"create_session","sessionId":"s"}`); *f.SessionVersion != 0 || has(f, "mine") {
		t.Errorf("got %s, want a new session", f.Raw)
	}
}
