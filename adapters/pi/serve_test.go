package pi_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// types returns the types of frames, those of events of a session as event/<type>.
func types(t *testing.T, frames []pitest.Frame) []string {
	t.Helper()
	var out []string
	for _, f := range frames {
		k := f.Type
		if f.Event != nil {
			var tr pitest.Transcript
			tr.Add(f)
			k += "/" + tr.Kinds[0]
		}
		out = append(out, k)
	}
	return out
}

func TestTheFramesOfAPromptAreInOrder(t *testing.T) {
	h, s := newServer(t, pi.Options{Version: "9"})
	joinAgent(t, h, core.Card{ID: "shout"}, answerWith(core.Text{Text: "HELLO"}, core.Done{}))
	c := dial(t, s, pi.ConnOptions{})
	if got, want := string(c.received()[0].Raw), `{"type":"server_ready","data":{"protocolVersion":"1.0.0","serverVersion":"9","transports":["websocket","stdio"]}}`; got != want {
		t.Errorf("first frame:\n got %s\nwant %s", got, want)
	}
	c.open("s", "shout")
	f := c.ok(`{"id":"p","type":"prompt","sessionId":"s","message":"hello"}`)
	if got := *f.SessionVersion; got != 1 {
		t.Errorf("sessionVersion: got %d, want 1", got)
	}
	got := types(t, c.received())
	want := strings.Fields(`
		server_ready startup_recovery_summary
		command_accepted command_started command_finished response session_created
		command_accepted command_started command_finished response
		command_accepted command_started
		event/agent_start event/turn_start event/message_start event/message_end
		event/message_start event/message_update/text_start event/message_update/text_delta event/message_update/text_end
		event/message_end event/turn_end event/agent_end
		command_finished response`)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("frames (-want +got):\n%s", diff)
	}
	if got := c.transcript("s").Snapshots; got != "HELLO" {
		t.Errorf("got %q, want HELLO", got)
	}
}

func TestLifecycleEventsDescribeTheCommand(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	c.ok(`{"id":"c1","type":"create_session","sessionId":"s1"}`)
	c.send(`{"type":"list_sessions"}`)
	c.until(`"type":"response"`, "list_sessions")
	c.fails(`{"id":"m1","type":"set_session_name","sessionId":"s1","name":"n","ifSessionVersion":99}`, "Session version mismatch: expected 99, got 0")
	for _, want := range []string{
		`{"type":"command_accepted","data":{"commandId":"c1","commandType":"create_session","sessionId":"s1","dependsOn":[]}}`,
		`{"type":"command_finished","data":{"commandId":"c1","commandType":"create_session","sessionId":"s1","dependsOn":[],"success":true,"sessionVersion":0}}`,
		`"commandType":"list_sessions","dependsOn":[],"success":true}}`,
		`{"type":"command_finished","data":{"commandId":"m1","commandType":"set_session_name","sessionId":"s1","dependsOn":[],"ifSessionVersion":99,"success":false,"error":"Session version mismatch: expected 99, got 0"}}`,
	} {
		if c.count(want) != 1 {
			t.Errorf("got %d frames, want 1, of\n%s", c.count(want), want)
		}
	}
	if c.count(`"commandId":"anon:`) != 3 {
		t.Errorf("got %d lifecycle events with a synthetic id, want 3", c.count(`"commandId":"anon:`))
	}
	for _, f := range c.received() {
		if f.Type == "response" && has(f, "list_sessions") && has(f, `"id"`) && !has(f, `"sessionId"`) {
			t.Errorf("the response to a command without an id has one: %s", f.Raw)
		}
	}
}

func TestARefusedCommandHasNoLifecycle(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	for _, tt := range []struct {
		transport   pi.Transport
		frame, want string
	}{
		{pi.WebSocket, `{"id":"x","type":"nope"}`, `{"id":"x","type":"response","command":"nope","success":false,"error":"Validation failed: type: Unknown command type 'nope'"}`},
		{pi.Stdio, `{"id":"x","type":"nope"}`, `{"id":"x","type":"response","command":"nope","success":false,"error":"Validation failed: type: Unknown command type 'nope'"}`},
		{pi.WebSocket, `[]`, `{"type":"response","command":"unknown","success":false,"error":"Validation failed: type: Command must have a string 'type' field"}`},
		{pi.Stdio, `[]`, `{"type":"response","command":"unknown","success":false,"error":"Invalid JSON"}`},
		{pi.WebSocket, `{"type":5,"id":"q"}`, `{"id":"q","type":"response","command":5,"success":false,"error":"Validation failed: type: Command must have a string 'type' field"}`},
		{pi.Stdio, `{"type":5,"id":"q"}`, `{"type":"response","command":"unknown","success":false,"error":"Invalid JSON"}`},
		{pi.Stdio, `not json`, `{"type":"response","command":"unknown","success":false,"error":"Invalid JSON"}`},
		{pi.Stdio, `{"type":"a","type":"b"}`, `{"type":"response","command":"unknown","success":false,"error":"Invalid JSON: `},
		{pi.WebSocket, `{"type":`, `{"type":"response","command":"unknown","success":false,"error":"`},
		{pi.WebSocket, `{"type":"a","type":"b"}`, `{"type":"response","command":"unknown","success":false,"error":"`},
		{pi.WebSocket, `{"id":"x","type":"get_state","sessionId":""}`, `"Validation failed: sessionId: Session commands must have a non-empty string 'sessionId'"`},
	} {
		c := dial(t, s, pi.ConnOptions{Transport: tt.transport})
		c.send(tt.frame)
		f := c.until(`"type":"response"`)
		if !strings.HasPrefix(string(f.Raw), tt.want) && !strings.Contains(string(f.Raw), tt.want) {
			t.Errorf("%s %s:\n got %s\nwant %s", tt.transport, tt.frame, f.Raw, tt.want)
		}
		c.ok(`{"type":"health_check"}`)
		if got := c.count(`"type":"command_accepted"`); got != 1 {
			t.Errorf("%s %s: got %d admitted commands, want only the health check", tt.transport, tt.frame, got)
		}
		c.Close()
	}
}

func TestATooLargeFrameIsRefusedAndTheConnectionStaysOpen(t *testing.T) {
	_, s := newServer(t, pi.Options{MaxMessageBytes: 100})
	c := dial(t, s, pi.ConnOptions{})
	c.send(`{"type":"list_sessions","padding":"` + strings.Repeat("x", 100) + `"}`)
	f := c.until(`"type":"response"`)
	if want := `{"type":"response","command":"unknown","success":false,"error":"Message size 137 exceeds limit 100"}`; string(f.Raw) != want {
		t.Errorf("got %s\nwant %s", f.Raw, want)
	}
	c.ok(`{"type":"health_check"}`)
}

func TestAMessageThatTheTransportRefusedIsAnswered(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	c := dialOver(t, s, pi.ConnOptions{}, &rejecting{Conn: hubs}, clients)
	c.send(`anything`)
	c.until(`"error":"Message size 10485761 exceeds limit 10485760"`)
	c.ok(`{"type":"health_check"}`)
}

// rejecting is a transport that rejects its first message.
type rejecting struct {
	link.Conn[[]byte, []byte]
	did bool
}

func (r *rejecting) Receive(ctx context.Context) ([]byte, error) {
	m, err := r.Conn.Receive(ctx)
	if err == nil && !r.did {
		r.did = true
		return nil, &link.Reject{Cause: link.TooLarge, Text: "too large", Size: 10485761, Limit: 10485760}
	}
	return m, err
}

func TestEveryCommandOfTheSpecificationIsImplemented(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	const arguments = `,"sessionId":"s","message":"hi","provider":"coven","modelId":"x","level":"low","name":"n","enabled":true,"command":"ls",` +
		`"sessionPath":"/nowhere.jsonl","entryId":"e","targetId":"t","requestId":"r","response":{"method":"cancelled"}}`
	for name := range command.Table {
		c.do(`{"type":"create_session","sessionId":"s"}`) // the command before may have deleted it
		if f := c.do(`{"type":"` + name + `"` + arguments); strings.Contains(f.Error, "Validation failed") || f.Error == "Session s not found" {
			t.Errorf("%s: got %q, want every command implemented", name, f.Error)
		}
	}
}

const bashOff = "bash is not allowed on this server: whoever runs it allows it to all of its pi clients with the setting pi.bash (pi: {bash: true}, or DRAGOMAN_PI_BASH=true)"

func TestBashThatIsNotAllowedIsRefused(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	c := dial(t, s, pi.ConnOptions{})
	c.open("s", "")
	c.fails(`{"type":"bash","sessionId":"s","command":"ls"}`, bashOff)
	c.fails(`{"type":"bash","sessionId":"t","command":"ls"}`, "Session t not found")
}

func TestTooManyPendingCommandsAreRefused(t *testing.T) {
	h, s := newServer(t, pi.Options{Commands: command.Options{MaxPending: 2}})
	joinAgent(t, h, core.Card{ID: "mute"}, func(*testAgent, hub.Batch) {})
	for _, tt := range []struct {
		transport pi.Transport
		want      string
	}{
		{pi.WebSocket, "Too many pending commands for this connection (max 2)"},
		{pi.Stdio, "Too many pending commands for this transport (max 2)"},
	} {
		c := dial(t, s, pi.ConnOptions{Transport: tt.transport})
		id := string(tt.transport)
		c.open(id, "mute")
		c.send(`{"id":"p","type":"prompt","sessionId":"` + id + `","message":"x"}`)
		c.send(`{"id":"q","type":"set_session_name","sessionId":"` + id + `","name":"x"}`)
		c.until(`"type":"command_accepted"`, `"q"`)
		c.fails(`{"id":"r","type":"list_sessions"}`, tt.want)
		c.Close()
	}
}

func TestTheSameIDsOfTwoClientsDoNotCollide(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a", MaxConcurrent: 8}, echoAgent)
	one, two := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
	one.open("x", "a")
	two.open("y", "a")
	one.ok(`{"id":"1","type":"prompt","sessionId":"x","message":"one"}`)
	two.ok(`{"id":"1","type":"prompt","sessionId":"y","message":"two"}`)
	if got := one.transcript("x").Snapshots; got != "you said one" {
		t.Errorf("client one: got %q", got)
	}
	if got := two.transcript("y").Snapshots; got != "you said two" {
		t.Errorf("client two: got %q", got)
	}
	if n := one.count(`"sessionId":"y","event"`); n != 0 {
		t.Errorf("client one got %d events of a session that it did not subscribe to", n)
	}
}

func TestSessionsOfAnAuthenticatedPrincipalAreItsOwn(t *testing.T) {
	h, s := newServer(t, pi.Options{})
	joinAgent(t, h, core.Card{ID: "a"}, echoAgent)
	ann := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	bob := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}})
	ann.open("s", "a")
	ann.ok(`{"type":"prompt","sessionId":"s","message":"secret"}`)
	bob.fails(`{"type":"get_messages","sessionId":"s"}`, "Session s not found")
	bob.ok(`{"type":"create_session","sessionId":"s"}`)
	if f := bob.ok(`{"type":"list_sessions"}`); strings.Contains(string(f.Data), "secret") || strings.Count(string(f.Data), "sessionId") != 1 {
		t.Errorf("bob's sessions: got %s, want his own", f.Data)
	}
	if bob.count("secret") != 0 {
		t.Error("bob was told what ann asked")
	}
	again := dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}})
	if f := again.ok(`{"type":"get_messages","sessionId":"s"}`); !strings.Contains(string(f.Data), "you said secret") {
		t.Errorf("ann's second connection: got %s, want her messages", f.Data)
	}
}

func TestAConnectionAboveTheLimitIsClosedWithAReason(t *testing.T) {
	_, s := newServer(t, pi.Options{MaxConnections: 1})
	dial(t, s, pi.ConnOptions{})
	hubs, clients := coretest.Pipe[[]byte, []byte](8)
	served := make(chan link.Reason, 1)
	go func() { served <- s.Serve(t.Context(), hubs, pi.ConnOptions{}) }()
	_, err := pitest.Connect(t.Context(), clients, nil)
	if err == nil {
		t.Error("a connection over the limit: got no error, want one")
	}
	want := link.Reason{Cause: link.Overloaded, Text: "Connection limit reached (1 connections)", Code: 1013}
	if got := <-served; got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	dial(t, s, pi.ConnOptions{Transport: pi.Stdio}) // stdio does not count
}

func TestHealthCheckHasItsShape(t *testing.T) {
	_, s := newServer(t, pi.Options{MaxSessions: 1})
	c := dial(t, s, pi.ConnOptions{})
	var got struct {
		Healthy                            bool
		Issues                             []string
		HasOpenCircuit, HasOpenBashCircuit bool
	}
	if err := json.Unmarshal(c.ok(`{"type":"health_check"}`).Data, &got); err != nil || !got.Healthy || len(got.Issues) != 0 {
		t.Errorf("got %+v and %v, want healthy", got, err)
	}
	c.open("s", "")
	c.fails(`{"type":"create_session","sessionId":"t"}`, "Session limit reached (1 sessions)")
	if f := c.ok(`{"type":"health_check"}`); !strings.Contains(string(f.Data), `Session count at 1/1 (90%+)`) {
		t.Errorf("got %s, want the issue named", f.Data)
	}
}
