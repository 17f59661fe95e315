package pi_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/pitest"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// A testServer is the server of one client, played by the test.
type testServer struct {
	t    *testing.T
	conn link.Conn[[]byte, []byte]
}

// connect returns a client and its server, which greets it with these frames. Every frame that the client
// passes on is in seen.
func connect(t *testing.T, greeting ...string) (c *pitest.Conn, s testServer, seen chan pitest.Frame) {
	t.Helper()
	server, end := coretest.Pipe[[]byte, []byte](8)
	s = testServer{t, server}
	for _, frame := range greeting {
		s.send(frame)
	}
	seen = make(chan pitest.Frame, 16)
	c, err := pitest.Connect(t.Context(), end, func(f pitest.Frame) { seen <- f })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, s, seen
}

func (s testServer) send(frame string) {
	s.t.Helper()
	if err := s.conn.Send(s.t.Context(), []byte(frame)); err != nil {
		s.t.Fatal(err)
	}
}

// received is what a server reads of a command.
type received struct{ ID, Type string }

func (s testServer) receive() (c received) {
	s.t.Helper()
	frame, err := s.conn.Receive(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := json.Unmarshal(frame, &c); err != nil {
		s.t.Fatal(err)
	}
	return c
}

const ready = `{"type":"server_ready","data":{"serverVersion":"1.0.0","protocolVersion":"1.0.0","transports":["websocket","stdio"]}}`

// A result is what a call of Do returned.
type result struct {
	frame pitest.Frame
	err   error
}

// do sends a command and returns where its result will be.
func do(t *testing.T, c *pitest.Conn, kind string) chan result {
	done := make(chan result, 1)
	go func() {
		f, err := c.Do(t.Context(), map[string]any{"type": kind})
		done <- result{f, err}
	}()
	return done
}

// Commands of different lanes are answered in any order.
func TestAResponseGoesToItsCommandInWhateverOrderItComes(t *testing.T) {
	c, s, _ := connect(t, ready)
	prompt := do(t, c, "prompt")
	first := s.receive()
	rename := do(t, c, "set_session_name")
	second := s.receive()
	s.send(`{"id":"` + second.ID + `","type":"response","command":"set_session_name","success":true,"sessionVersion":1}`)
	if got := <-rename; got.err != nil || string(got.frame.Command) != `"set_session_name"` {
		t.Errorf("the second command: got %s and %v, want its response", got.frame.Raw, got.err)
	}
	s.send(`{"id":"` + first.ID + `","type":"response","command":"prompt","success":true,"sessionVersion":2}`)
	if got := <-prompt; got.err != nil || string(got.frame.Command) != `"prompt"` {
		t.Errorf("the first command: got %s and %v, want its response", got.frame.Raw, got.err)
	}
	if first.ID == "" || first.ID == second.ID {
		t.Errorf("got the ids %q and %q, want one for each command", first.ID, second.ID)
	}
}

func TestAFailureIsAResponseWithItsErrorAndWithoutData(t *testing.T) {
	c, s, _ := connect(t, ready)
	done := do(t, c, "load_session")
	id := s.receive().ID
	s.send(`{"id":"` + id + `","type":"response","command":"load_session","success":false,"error":"Session s already exists","replayed":true}`)
	got := <-done
	if f := got.frame; got.err != nil || f.Success || f.Error != "Session s already exists" || f.Data != nil || !f.Replayed || f.SessionVersion != nil {
		t.Errorf("got %+v and %v, want a replayed failure with its error and nothing else", f, got.err)
	}
}

// A newer server of the same major version adds members and events.
func TestAClientIgnoresMembersAndEventsThatItDoesNotKnow(t *testing.T) {
	news := `{"type":"weather_changed","data":{"to":"rain"}}`
	c, s, seen := connect(t, news,
		`{"type":"server_ready","data":{"serverVersion":"9.0.0","protocolVersion":"1.1.0","transports":["websocket","stdio","pigeon"],"mood":"fine"},"since":1}`)
	done := do(t, c, "health_check")
	id := s.receive().ID
	s.send(`{"type":"event","sessionId":"s","event":{"type":"agent_dreamed","of":["sheep"]}}`)
	s.send(`{"id":"` + id + `","type":"response","command":"health_check","success":true,"data":{"healthy":true},"cost":{"cents":1}}`)
	if got := <-done; got.err != nil || !got.frame.Success {
		t.Errorf("got %s and %v, want the response", got.frame.Raw, got.err)
	}
	var tr pitest.Transcript
	for _, want := range []string{"weather_changed", "server_ready", "event", "response"} {
		f := <-seen
		if f.Type != want {
			t.Errorf("got %s, want the frame of type %s passed on", f.Raw, want)
		}
		tr.Add(f)
	}
	if tr.Snapshots != "" || tr.StopReason != "" {
		t.Errorf("got text %q and stop reason %q of an unknown event, want none", tr.Snapshots, tr.StopReason)
	}
}

func TestAClientLeavesAServerOfAnotherMajorVersion(t *testing.T) {
	for version, welcome := range map[string]bool{`"1.0.0"`: true, `"1.7.2"`: true, `"2.0.0"`: false, `"0.9.0"`: false, `"10.0.0"`: false, `null`: true} {
		server, end := coretest.Pipe[[]byte, []byte](8)
		s := testServer{t, server}
		s.send(`{"type":"server_ready","data":{"serverVersion":"9","protocolVersion":` + version + `}}`)
		c, err := pitest.Connect(t.Context(), end, nil)
		var reason *link.Reason
		if welcome != (err == nil) || err != nil && (!errors.As(err, &reason) || reason.Cause != link.Protocol || !strings.Contains(err.Error(), "version")) {
			t.Errorf("version %s: got %v, want it taken: %t", version, err, welcome)
		}
		if err == nil {
			c.Close()
		}
	}
}

func TestACommandWithoutAResponseEndsWithTheConnection(t *testing.T) {
	c, s, seen := connect(t, ready)
	done := do(t, c, "prompt")
	s.receive()
	s.send(`{"type":"server_shutdown","data":{"reason":"graceful_shutdown","timeoutMs":30000}}`)
	<-seen
	if f := <-seen; f.Type != "server_shutdown" {
		t.Errorf("got %s, want the end announced", f.Raw)
	}
	if err := s.conn.Close(link.Reason{Cause: link.ShuttingDown, Text: "Server shutting down", Code: 1001}); err != nil {
		t.Fatal(err)
	}
	var why *link.Reason
	if got := <-done; !errors.As(got.err, &why) || why.Cause != link.Normal {
		t.Errorf("got %s and %v, want an error that says that the server closed the connection", got.frame.Raw, got.err)
	}
}
