package editor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/task"
)

// setup is a hub under a fake clock, with an agent named coder.
type setup struct {
	*testing.T
	hub   *hub.Hub
	coder *hub.Session
	told  []told // what agents were told and no test has looked at
}

type told struct {
	agent *hub.Session
	task  *task.Task
	body  core.Body
}

// withHub runs a test with a hub whose promises are checked at the end.
func withHub(t *testing.T, test func(*setup)) {
	t.Helper()
	withHubOf(t, hub.Options{}, test)
}

func withHubOf(t *testing.T, opts hub.Options, test func(*setup)) {
	t.Helper()
	opts.ID = "hub1"
	synctest.Test(t, func(t *testing.T) {
		s := &setup{T: t, hub: coretest.NewHub(t, opts)}
		s.coder = s.agent("coder", 4)
		test(s)
	})
}

// agent joins the hub as an agent that can do everything.
func (s *setup) agent(id core.AgentID, concurrent int) *hub.Session {
	s.Helper()
	a := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: string(id), Dialect: "test"}, Dialect: "test", Keep: true})
	all := core.FeatureStreaming | core.FeatureInjection | core.FeatureCancellation | core.FeatureApprovals | core.FeatureFiles | core.FeatureToolStates
	if err := a.Join(core.Card{ID: id, Dialect: "test", Features: all, MaxConcurrent: concurrent, Capabilities: []string{"ui"}}, hub.JoinOptions{}); err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { a.Close(nil) })
	return a
}

// next returns what an agent is told next, of the kind.
func (s *setup) next(a *hub.Session, kind core.Kind) (*task.Task, core.Body) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Hour)
	defer cancel()
	for {
		for i, t := range s.told {
			if t.agent == a && t.body.Kind() == kind {
				s.told = s.told[i+1:]
				return t.task, t.body
			}
		}
		b, err := a.Next(ctx)
		if err != nil {
			s.Fatalf("the agent: got %v, want %s", err, kind)
		}
		for _, e := range b.Events {
			s.told = append(s.told, told{a, b.Task, e.Body})
		}
	}
}

// assigned returns the next task of the agent coder.
func (s *setup) assigned() *task.Task {
	s.Helper()
	t, _ := s.next(s.coder, core.KindAssigned)
	return t
}

// say reports events of the agent coder.
func (s *setup) say(t *task.Task, bodies ...core.Body) {
	s.Helper()
	for _, b := range bodies {
		if err := s.coder.Report(t.ID(), b, nil); err != nil {
			s.Fatalf("%#v: %v", b, err)
		}
	}
}

// sayForeign reports an event with what the editor dialect said.
func (s *setup) sayForeign(t *task.Task, b core.Body, foreign string) {
	s.Helper()
	if err := s.coder.Report(t.ID(), b, &core.Foreign{Dialect: editor.Dialect, JSON: json.RawMessage(foreign)}); err != nil {
		s.Fatal(err)
	}
}

// client is an editor whose messages the test sends and receives.
type client struct {
	*setup
	conn  *coretest.End[[]byte, []byte]
	ended chan link.Reason
}

// connect connects an editor for the agent coder.
func (s *setup) connect(opts editor.Options) *client {
	s.Helper()
	if opts.Agent.IsZero() {
		opts.Agent = core.ToAgent("coder")
	}
	opts.Version = "1.0.0"
	conn, far := coretest.Pipe[[]byte, []byte](4)
	c := &client{s, conn, make(chan link.Reason, 1)}
	go func() { c.ended <- editor.Serve(context.Background(), s.hub, far, opts) }()
	s.Cleanup(func() {
		_ = conn.Close(link.Reason{Cause: link.Normal})
		synctest.Wait()
	})
	return c
}

// greeted connects an editor that has sent initialize.
func (s *setup) greeted(opts editor.Options, capabilities string) *client {
	s.Helper()
	c := s.connect(opts)
	c.send(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":%s}}`, capabilities)
	c.receive()
	return c
}

// begun connects an editor with a session, and returns the id of that.
func (s *setup) begun(opts editor.Options, capabilities string) (*client, string) {
	s.Helper()
	c := s.greeted(opts, capabilities)
	c.send(`{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/home/ada/project","mcpServers":[]}}`)
	return c, c.receive().text("result", "sessionId")
}

func (c *client) send(format string, args ...any) {
	c.Helper()
	if err := c.conn.Send(c.Context(), fmt.Appendf(nil, format, args...)); err != nil {
		c.Fatalf("send %s: %v", format, err)
	}
}

// message is a message of the hub.
type message struct {
	*client
	raw string
	all map[string]any
}

// receive returns the next message.
func (c *client) receive() message {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), 24*time.Hour)
	defer cancel()
	frame, err := c.conn.Receive(ctx)
	if err != nil {
		c.Fatalf("got %v, want a message", err)
	}
	m := message{client: c, raw: string(frame)}
	if err := json.Unmarshal(frame, &m.all); err != nil {
		c.Fatalf("got %s, want JSON", frame)
	}
	return m
}

// at returns a member.
func (m message) at(path ...string) any {
	var v any = m.all
	for _, key := range path {
		object, _ := v.(map[string]any)
		v = object[key]
	}
	return v
}

// text returns a member that is a string, or "".
func (m message) text(path ...string) string {
	text, _ := m.at(path...).(string)
	return text
}

// update returns the update of a session/update as JSON, else the whole message.
func (m message) update() string {
	if m.text("method") != "session/update" {
		return m.raw
	}
	_, update, _ := strings.Cut(m.raw, `"update":`)
	return strings.TrimSuffix(update, "}}")
}

// want receives messages and compares them: the update of a session/update, else the whole.
func (c *client) want(want ...string) {
	c.Helper()
	for _, w := range want {
		if got := c.receive().update(); got != w {
			c.Fatalf("got  %s\nwant %s", got, w)
		}
	}
}

// wantError receives an error that answers an id.
func (c *client) wantError(id any, code int, text string) {
	c.Helper()
	m := c.receive()
	if got := m.at("error", "code"); m.at("id") != id || got != float64(code) || !strings.Contains(m.text("error", "message"), text) {
		c.Fatalf("got %s, want the error %d of %v that says %q", m.raw, code, id, text)
	}
}

// wantNothing wants that nothing was sent.
func (c *client) wantNothing() {
	c.Helper()
	synctest.Wait()
	ctx, cancel := context.WithCancel(c.Context())
	cancel()
	if frame, err := c.conn.Receive(ctx); err == nil {
		c.Fatalf("got %s, want nothing", frame)
	}
}

// prompt sends a prompt of text under an id.
func (c *client) prompt(id int, session, text string) {
	c.Helper()
	c.send(`{"jsonrpc":"2.0","id":%d,"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}}`, id, session, text)
}

const none = `{}`

// The ends of a prompt.
func ended(id int, reason string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"stopReason":%q}}`, id, reason)
}

func chunk(kind, text string) string {
	return fmt.Sprintf(`{"sessionUpdate":%q,"content":{"type":"text","text":%q}}`, kind, text)
}
