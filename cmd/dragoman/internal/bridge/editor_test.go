package bridge_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// end is the far end of a connection of the bridge.
type end = coretest.End[[]byte, []byte]

// carried is a running bridge: the editor, and the hubs that it connects to.
type carried struct {
	t      *testing.T
	editor *end
	hubs   chan *end // the connections that the bridge opened
	down   chan bool // whether there is a hub
	result chan error
}

// carry starts a bridge in a synctest bubble. The hub is there if up.
func carry(t *testing.T, up bool) *carried {
	t.Helper()
	near, far := coretest.Pipe[[]byte, []byte](64)
	c := &carried{t: t, editor: far, hubs: make(chan *end, 8), down: make(chan bool, 1), result: make(chan error, 1)}
	c.down <- !up
	e := bridge.Editor{Log: slog.New(slog.DiscardHandler), Dial: func(context.Context) (bridge.Conn, error) {
		down := <-c.down
		c.down <- down
		if down {
			return nil, errors.New("no hub answers: start one with 'dragoman serve'")
		}
		server, client := coretest.Pipe[[]byte, []byte](64)
		c.hubs <- server
		return client, nil
	}}
	go func() { c.result <- e.Carry(t.Context(), near) }()
	return c
}

// hub sets whether there is a hub.
func (c *carried) hub(up bool) {
	<-c.down
	c.down <- !up
}

// send sends a line as one end.
func (c *carried) send(from *end, line string) {
	c.t.Helper()
	if err := from.Send(c.t.Context(), []byte(line)); err != nil {
		c.t.Fatal(err)
	}
}

// want receives a line at one end.
func (c *carried) want(at *end, want string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Hour)
	defer cancel()
	got, err := at.Receive(ctx)
	if err != nil {
		c.t.Fatalf("got %v, want %s", err, want)
	}
	if string(got) != want {
		c.t.Fatalf("got %s, want %s", got, want)
	}
}

// wantError receives an error that answers an id.
func (c *carried) wantError(id, text string) {
	c.t.Helper()
	got, err := c.editor.Receive(c.t.Context())
	if err != nil {
		c.t.Fatal(err)
	}
	var m struct {
		ID    json.RawMessage
		Error struct {
			Code    int
			Message string
		}
	}
	if err := json.Unmarshal(got, &m); err != nil || string(m.ID) != id || m.Error.Code == 0 || !strings.Contains(m.Error.Message, text) {
		c.t.Fatalf("got %s, want an error for %s that says %q", got, id, text)
	}
}

// leave ends stdin and wants the bridge to end without an error.
func (c *carried) leave() {
	c.t.Helper()
	c.editor.Close(link.Reason{Cause: link.Normal})
	if err := <-c.result; err != nil {
		c.t.Errorf("got %v, want no error", err)
	}
}

const (
	greeting = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}`
	greeted  = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}`
	begun    = `{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/a","mcpServers":[]}}`
	began    = `{"jsonrpc":"2.0","id":1,"result":{"sessionId":"editor-1"}}`
	prompt   = `{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"editor-1","prompt":[]}}`
	chunk    = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"editor-1"}}`
)

// open begins a session by the bridge and returns the hub.
func (c *carried) open() *end {
	c.t.Helper()
	hub := <-c.hubs
	for _, step := range [][2]string{{greeting, greeted}, {begun, began}} {
		c.send(c.editor, step[0])
		c.want(hub, step[0])
		c.send(hub, step[1])
		c.want(c.editor, step[1])
	}
	return hub
}

func TestTheEditorBridgePassesMessagesBothWays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := c.open()
		c.send(c.editor, prompt)
		c.want(hub, prompt)
		c.send(hub, chunk)
		c.want(c.editor, chunk)
		asks := `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{}}`
		c.send(hub, asks)
		c.want(c.editor, asks)
		answer := `{"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"cancelled"}}}`
		c.send(c.editor, answer)
		c.want(hub, answer)
		done := `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`
		c.send(hub, done)
		c.want(c.editor, done)
		c.leave()
	})
}

func TestTheEditorBridgeOutlivesTheHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := c.open()
		c.send(c.editor, prompt)
		c.want(hub, prompt)
		c.send(hub, `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{}}`)
		c.want(c.editor, `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{}}`)
		c.hub(false)
		hub.Close(link.Reason{Cause: link.PeerGone})
		c.wantError("2", "load the session")
		c.want(c.editor, `{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"p"}}`)

		c.send(c.editor, `{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{}}`)
		c.wantError("3", "dragoman serve")

		c.hub(true)
		hub = <-c.hubs
		c.want(hub, `{"jsonrpc":"2.0","id":"dragoman editor 1","method":"initialize","params":{"protocolVersion":1}}`)
		c.want(hub, `{"jsonrpc":"2.0","id":"dragoman editor 2","method":"session/resume","params":{"sessionId":"editor-1","cwd":"/a","mcpServers":[]}}`)
		c.send(hub, `{"jsonrpc":"2.0","id":"dragoman editor 1","result":{}}`)
		c.send(hub, `{"jsonrpc":"2.0","id":"dragoman editor 2","result":{}}`)
		// The late answer to the permission request is for nobody.
		c.send(c.editor, `{"jsonrpc":"2.0","id":"p","result":{"outcome":{"outcome":"cancelled"}}}`)
		c.send(c.editor, prompt)
		c.want(hub, prompt)
		c.send(hub, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		c.want(c.editor, `{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}`)
		c.leave()
	})
}

func TestTheEditorBridgeSaysThatThereIsNoHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, false)
		began := time.Now()
		c.send(c.editor, greeting)
		c.wantError("0", "dragoman serve")
		if took := time.Since(began); took < time.Second || took > 10*time.Second {
			t.Errorf("got the error after %s, want some patience", took)
		}
		c.leave()
	})
}

func TestTheEditorBridgeWaitsForAHubThatStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, false)
		c.send(c.editor, greeting)
		time.Sleep(time.Second)
		c.hub(true)
		hub := <-c.hubs
		c.want(hub, greeting)
		c.send(hub, greeted)
		c.want(c.editor, greeted)
		c.leave()
	})
}

func TestTheEditorBridgeForgetsAClosedSession(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := c.open()
		closing := `{"jsonrpc":"2.0","id":5,"method":"session/close","params":{"sessionId":"editor-1"}}`
		c.send(c.editor, closing)
		c.want(hub, closing)
		c.send(hub, `{"jsonrpc":"2.0","id":5,"result":{}}`)
		c.want(c.editor, `{"jsonrpc":"2.0","id":5,"result":{}}`)
		hub.Close(link.Reason{Cause: link.PeerGone})
		hub = <-c.hubs
		c.want(hub, `{"jsonrpc":"2.0","id":"dragoman editor 1","method":"initialize","params":{"protocolVersion":1}}`)
		c.leave()
		if m, err := hub.Receive(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("got %s, %v, want nothing more", m, err)
		}
	})
}

func TestTheEditorBridgeRefusesWhatIsNoMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := c.open()
		for line, want := range map[string]string{
			`{`:                        "not JSON",
			"{\"id\":\"\xff\"}":        "UTF-8",
			`[]`:                       "batch",
			`{"jsonrpc":"2.0","id":7}`: "has none",
		} {
			id := "null"
			if strings.Contains(line, "7") {
				id = "7"
			}
			c.send(c.editor, line)
			c.wantError(id, want)
		}
		c.send(c.editor, prompt)
		c.want(hub, prompt)
		c.leave()
	})
}

func TestTheHubIsToldOfAnAnswerThatTheEditorBridgeCannotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := c.open()
		asks := `{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{}}`
		c.send(hub, asks)
		c.want(c.editor, asks)
		c.send(c.editor, `{"jsonrpc":"2.0","id":"p","result":{},"error":{"code":1,"message":"both"}}`)
		c.want(hub, `{"jsonrpc":"2.0","id":"p","error":{"code":-32600,"message":"a response has a result or an error, this one has both"}}`)
		c.send(c.editor, `{"jsonrpc":"2.0","id":"p","result":{},"error":{"code":1,"message":"both"}}`) // nobody waits for it now
		c.send(c.editor, prompt)
		c.want(hub, prompt)
		c.leave()
	})
}

func TestTheEditorBridgeWaitsAMomentForTheLastAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := carry(t, true)
		hub := <-c.hubs
		c.send(c.editor, greeting)
		c.want(hub, greeting)
		began := time.Now()
		c.leave()
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("got the end after %s, want it within a second or two", took)
		}
	})
}
