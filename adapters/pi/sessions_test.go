package pi_test

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

func TestASessionIsCreatedListedAndDeleted(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	f := c.ok(`{"type":"create_session","sessionId":"s1"}`)
	var got struct {
		SessionID   string
		SessionInfo map[string]any
	}
	if err := json.Unmarshal(f.Data, &got); err != nil {
		t.Fatal(err)
	}
	if at, _ := got.SessionInfo["createdAt"].(string); !regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`).MatchString(at) {
		t.Errorf("createdAt: got %q", at)
	}
	delete(got.SessionInfo, "createdAt")
	want := map[string]any{"sessionId": "s1", "thinkingLevel": "off", "isStreaming": false, "messageCount": 0.}
	if diff := cmp.Diff(want, got.SessionInfo); diff != "" || *f.SessionVersion != 0 {
		t.Errorf("version %d, info (-want +got):\n%s", *f.SessionVersion, diff)
	}
	created := c.until(`"type":"session_created"`)
	if diff := cmp.Diff(string(f.Data), string(created.Data)); diff != "" {
		t.Errorf("session_created (-response +event):\n%s", diff)
	}
	c.fails(`{"type":"create_session","sessionId":"s1"}`, "Session s1 already exists")
	c.fails(`{"type":"create_session","sessionId":"a/b"}`, "Session ID must contain only alphanumeric characters, underscores, dashes, and dots")
	c.fails(`{"type":"create_session","sessionId":"`+strings.Repeat("x", 257)+`"}`, "Session ID too long (max 256 characters)")
	c.ok(`{"type":"get_state","sessionId":"s1"}`) // the failed duplicate did not affect the existing session

	f = c.ok(`{"type":"create_session"}`)
	if err := json.Unmarshal(f.Data, &got); err != nil || !regexp.MustCompile(`^session-[0-9a-z]+-[0-9a-f]{8}$`).MatchString(got.SessionID) || f.SessionVersion == nil {
		t.Errorf("a session without an id: got %s and version %v", f.Data, f.SessionVersion)
	}
	var list struct{ Sessions []map[string]any }
	if err := json.Unmarshal(c.ok(`{"type":"list_sessions"}`).Data, &list); err != nil || len(list.Sessions) != 2 {
		t.Errorf("list_sessions: got %+v and %v, want two", list, err)
	}
	f = c.ok(`{"type":"delete_session","sessionId":"s1"}`)
	if string(f.Data) != `{"deleted":true}` || f.SessionVersion != nil {
		t.Errorf("delete_session: got %s and version %v", f.Data, f.SessionVersion)
	}
	for _, k := range []string{"delete_session", "switch_session"} {
		c.fails(`{"type":"`+k+`","sessionId":"s1"}`, "Session s1 not found")
	}
	c.fails(`{"type":"get_state","sessionId":"s1"}`, "Session s1 not found")
	c.fails(`{"type":"delete_session","sessionId":"s1","ifSessionVersion":0}`, "Session s1 not found for ifSessionVersion=0")
}

func TestTheWorkingDirectoryIsCheckedAsPiServerDoes(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	dir := t.TempDir()
	for _, tt := range []struct{ cwd, want string }{
		{"relative", "CWD must be an absolute path"},
		{"~/x", "CWD contains potentially dangerous path components"},
		{"/" + strings.Repeat("x", 4096), "CWD too long (max 4096 characters)"},
		{filepath.Join(dir, "absent"), "CWD must point to an existing directory"},
	} {
		c.fails(`{"type":"create_session","cwd":"`+tt.cwd+`"}`, tt.want)
	}
	c.ok(`{"type":"create_session","sessionId":"d","cwd":"` + dir + `/../` + filepath.Base(dir) + `"}`)
}

func TestASessionIsBoundToItsAgent(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "x", Name: "Xerxes", Dialect: "parallax", Capabilities: []string{"war"}, Tools: []string{"spear"}}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	c.open("any", "")
	if f := c.ok(`{"type":"get_state","sessionId":"any"}`); has(f, `"model"`) {
		t.Errorf("an unbound session has a model: %s", f.Data)
	}
	c.ok(`{"type":"prompt","sessionId":"any","message":"hi"}`)
	f := c.ok(`{"type":"get_state","sessionId":"any"}`)
	want := `"model":{"id":"x","name":"Xerxes","api":"dragoman","provider":"parallax","baseUrl":"","reasoning":true,"input":["text"],` +
		`"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0},"contextWindow":128000,"maxTokens":16384}`
	if !has(f, want) {
		t.Errorf("the session after its first prompt:\n got %s\nwant %s", f.Data, want)
	}
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	for range 4 { // the choice sticks
		c.ok(`{"type":"prompt","sessionId":"any","message":"hi"}`)
	}
	for _, m := range messagesOf(t, c, "any") {
		if m.Role == conversation.RoleAssistant && !strings.Contains(string(m.JSON), `"provider":"parallax","model":"x"`) {
			t.Errorf("answered by %s, want by x", m.JSON)
		}
	}
	c.open("able", "capability:war")
	c.ok(`{"type":"prompt","sessionId":"able","message":"hi"}`)
	c.fails(`{"type":"create_session","agent":"capability:"}`, `address "capability:": a capability is missing; write capability:a or capability:a,b`)
	for _, blanks := range []string{"bad agent!!", "domain:a b", "capability:a b"} {
		c.fails(`{"type":"create_session","agent":"`+blanks+`"}`, `address "`+blanks+`": it has blanks, and nobody here answers for it; write an agent's id, capability:a,b, domain:a.b or *`)
	}
	joinAgent(t, h, core.Card{ID: "with blanks"}, echoAgent)
	c.ok(`{"type":"create_session","agent":"with blanks"}`)
	if f := c.ok(`{"type":"get_skills","sessionId":"any"}`); !has(f, `"name":"war"`) {
		t.Errorf("get_skills: got %s", f.Data)
	}
	if f := c.ok(`{"type":"get_tools","sessionId":"any"}`); !has(f, `"name":"spear"`, `"name":"agent_ask"`) {
		t.Errorf("get_tools: got %s", f.Data)
	}
	if f := c.ok(`{"type":"get_commands","sessionId":"any"}`); !has(f, `"name":"agents"`, `"source":"extension"`) {
		t.Errorf("get_commands: got %s", f.Data)
	}
}

func TestTheModelsAreTheAgents(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "")
	if f := c.ok(`{"type":"cycle_model","sessionId":"s"}`); string(f.Data) != "null" {
		t.Errorf("cycle_model without agents: got %s, want null", f.Data)
	}
	joinAgent(t, h, core.Card{ID: "a", Dialect: "coven", Features: core.FeatureFiles}, echoAgent)
	joinAgent(t, h, core.Card{ID: "b", Dialect: "acp"}, echoAgent)
	f := c.ok(`{"type":"get_available_models","sessionId":"s"}`)
	if !has(f, `"id":"a"`, `"input":["text","image"]`, `"provider":"acp"`) {
		t.Errorf("get_available_models: got %s", f.Data)
	}
	f = c.ok(`{"type":"set_model","sessionId":"s","provider":"acp","modelId":"b"}`)
	if !has(f, `"data":{"model":{"id":"b"`) || *f.SessionVersion != 2 {
		t.Errorf("set_model: got %s, want b and the second version", f.Raw)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"x"}`)
	c.until(`"provider":"acp","model":"b"`)
	c.fails(`{"type":"set_model","sessionId":"s","provider":"coven","modelId":"b"}`, "Model not found: coven/b")
	for _, tt := range []struct{ direction, want string }{{"forward", "a"}, {"backward", "b"}, {"backward", "a"}} {
		f := c.ok(`{"type":"cycle_model","sessionId":"s","direction":"` + tt.direction + `"}`)
		if !has(f, `"model":{"id":"`+tt.want+`"`, `"thinkingLevel":"off"`, `"isScoped":false`) {
			t.Errorf("cycle_model %s: got %s, want %s", tt.direction, f.Data, tt.want)
		}
	}
}

func TestTheVersionCountsChangesOfTheSession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	c := dial(t, s, pi.ConnOptions{})
	for i, tt := range []struct {
		command string
		want    int
	}{
		{`{"type":"create_session","sessionId":"s","agent":"a"}`, 0},
		{`{"type":"switch_session","sessionId":"s"}`, 0},
		{`{"type":"abort","sessionId":"s"}`, 1},
		{`{"type":"get_state","sessionId":"s"}`, 1},
		{`{"type":"prompt","sessionId":"s","message":"x","ifSessionVersion":1}`, 2},
		{`{"type":"set_session_name","sessionId":"s","name":"n"}`, 3},
		{`{"type":"get_messages","sessionId":"s","ifSessionVersion":3}`, 3},
	} {
		f := c.ok(tt.command)
		if f.SessionVersion == nil || *f.SessionVersion != tt.want {
			t.Errorf("command %d, %s: got %s, want version %d", i, tt.command, f.Raw, tt.want)
		}
	}
	if f := c.do(`{"type":"set_model","sessionId":"s","provider":"x","modelId":"y"}`); f.SessionVersion != nil {
		t.Errorf("a failure has a version: %s", f.Raw)
	}
	if f := c.ok(`{"type":"get_state","sessionId":"s"}`); !has(f, `"sessionName":"n"`, `"messageCount":2`) {
		t.Errorf("get_state: got %s", f.Data)
	}
}

func TestTheStatisticsOfASession(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, answerWith(
		core.ToolCall{ID: "1", Name: "t"}, core.ToolResult{ID: "1", Output: "o"},
		core.Text{Text: "fine"}, core.Usage{Input: 10, Output: 5, CacheRead: 2, CacheWrite: 1, Thinking: 4}, core.Done{}))
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "a")
	if f := c.ok(`{"type":"get_last_assistant_text","sessionId":"s"}`); string(f.Data) != `{"text":null}` {
		t.Errorf("before any: got %s", f.Data)
	}
	if f := c.ok(`{"type":"get_context_usage","sessionId":"s"}`); string(f.Data) != `{"contextWindow":128000,"percent":null,"tokens":null}` {
		t.Errorf("before any: got %s", f.Data)
	}
	c.ok(`{"type":"prompt","sessionId":"s","message":"x"}`)
	var got map[string]any
	if err := json.Unmarshal(c.ok(`{"type":"get_session_stats","sessionId":"s"}`).Data, &got); err != nil {
		t.Fatal(err)
	}
	delete(got, "sessionId")
	want := map[string]any{
		"userMessages": 1., "assistantMessages": 2., "toolCalls": 1., "toolResults": 1., "totalMessages": 4., "cost": 0.,
		"tokens": map[string]any{"input": 10., "output": 9., "cacheRead": 2., "cacheWrite": 1., "total": 22.},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("stats (-want +got):\n%s", diff)
	}
	if f := c.ok(`{"type":"get_last_assistant_text","sessionId":"s"}`); string(f.Data) != `{"text":"fine"}` {
		t.Errorf("get_last_assistant_text: got %s", f.Data)
	}
	if f := c.ok(`{"type":"get_context_usage","sessionId":"s"}`); !has(f, `"tokens":22`) {
		t.Errorf("get_context_usage: got %s", f.Data)
	}
}
