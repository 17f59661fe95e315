package pi_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// lastBoundTo returns a server with a session file whose last agent has the id, and the path
// of the file.
func lastBoundTo(t *testing.T, provider, id string) (bring func(string) *testAgent, c *testClient, path string) {
	t.Helper()
	dir := conversation.Resolve(t.TempDir())
	h, s := newServer(t, pi.Options{SessionDir: dir, Dialects: []string{"coven", "parallax"}})
	joinAgent(t, h, core.Card{ID: "anybody"}, echoAgent)
	lines := []string{
		`{"type":"session","version":3,"id":"x","timestamp":"2026-11-21T07:20:13.119Z","cwd":"/"}`,
		fmt.Sprintf(`{"type":"model_change","id":"00000001","parentId":null,"timestamp":"2026-11-21T07:20:13.120Z","provider":%q,"modelId":%q}`, provider, id),
	}
	path = filepath.Join(dir, "had.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bring = func(dialect string) *testAgent {
		return joinAgent(t, h, core.Card{ID: core.AgentID(id), Dialect: dialect}, echoAgent)
	}
	return bring, dial(t, s, pi.ConnOptions{}), path
}

func TestAConversationStaysBoundToItsAgentWhileItIsAway(t *testing.T) {
	const away = `agent "shout" is not connected: ask again once it is back, or choose another with set_model`
	for _, how := range []string{"load_session", "switch_session_file"} {
		t.Run(how, func(t *testing.T) {
			bring, c, path := lastBoundTo(t, "coven", "shout")
			if how == "switch_session_file" {
				c.ok(`{"type":"create_session","sessionId":"s"}`)
			}
			c.ok(`{"type":"` + how + `","sessionPath":"` + path + `","sessionId":"s"}`)
			if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"model":{"id":"shout"`, `"provider":"coven"`) {
				t.Errorf("while it is away: got %s, want the agent as the model", f.Data)
			}
			c.fails(`{"type":"prompt","sessionId":"s","message":"hi"}`, away)
			c.fails(`{"type":"prompt","sessionId":"s","message":"hi"}`, away) // and again for the next prompt
			bring("parallax")
			c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
			if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"model":{"id":"shout"`, `"provider":"parallax"`) {
				t.Errorf("once it is back: got %s, want the agent as it is now", f.Data)
			}
			if f := c.ok(`{"type":"get_last_assistant_text","sessionId":"s"}`); !has(f, "you said hi") {
				t.Errorf("once it is back: got %s, want its answer", f.Data)
			}
		})
	}
}

func TestAClientMayChooseAnotherAgentWhileItsOwnIsAway(t *testing.T) {
	_, c, path := lastBoundTo(t, "parallax", "shout")
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"s"}`)
	c.ok(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"anybody"}`)
	c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"model":{"id":"anybody"`) {
		t.Errorf("got %s, want the agent that was chosen", f.Data)
	}
}

func TestANativePiModelBindsNoAgent(t *testing.T) {
	_, c, path := lastBoundTo(t, "anthropic", "claude")
	c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"s"}`)
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); has(f, `"model":{`) {
		t.Errorf("got %s, want no model", f.Data)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
}

func TestASessionRemembersItsAgentBeforeItsFirstAnswer(t *testing.T) {
	for name, tt := range map[string]struct {
		here bool
		want string
	}{
		"one that is here":        {true, "model_change coven/shout "},
		"one that was never here": {false, "model_change dragoman/shout "},
	} {
		t.Run(name, func(t *testing.T) {
			dir := conversation.Resolve(t.TempDir())
			h, s := newServer(t, pi.Options{SessionDir: dir, Dialects: []string{"coven"}})
			if tt.here {
				joinAgent(t, h, core.Card{ID: "shout"}, echoAgent)
			}
			c := dial(t, s, pi.ConnOptions{})
			c.open("s", "shout")
			for _, how := range []string{"create_session", "new_session"} {
				if how == "new_session" {
					c.ok(`{"type":"new_session","sessionId":"s"}`)
				}
				if _, nodes := treeOf(c, "s"); len(nodes) != 1 || shownIn(nodes)[0] != tt.want {
					t.Errorf("%s: got %q, want only %q", how, shownIn(nodes), tt.want)
				}
			}
			c.ok(`{"type":"prompt","sessionId":"s","message":"/agents"}`) // the hub answers, which makes a file
			flush(s)
			path := fileOf(c, "s")

			h, s = newServer(t, pi.Options{SessionDir: dir, Dialects: []string{"coven"}})
			joinAgent(t, h, core.Card{ID: "anybody"}, echoAgent)
			c = dial(t, s, pi.ConnOptions{})
			c.ok(`{"type":"load_session","sessionPath":"` + path + `","sessionId":"s"}`)
			if f := c.do(`{"type":"prompt","sessionId":"s","message":"hi"}`); f.Success {
				t.Error("after a restart: got a request to another agent, want a wait for the bound one")
			}
			joinAgent(t, h, core.Card{ID: "shout"}, echoAgent)
			c.ok(`{"type":"prompt","sessionId":"s","message":"hi"}`)
			if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"model":{"id":"shout"`) {
				t.Errorf("got %s, want a request to its agent", f.Data)
			}
		})
	}
}
