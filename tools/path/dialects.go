package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/coder/websocket"
)

// A dialect is a way to ask the hub.
type dialect struct {
	name    string
	connect func(ctx context.Context, address string) (connection, error)
}

var dialects = []dialect{{"pi", connectPi}, {"REST", connectREST}, {"ACP", connectACP}}

// A connection asks the agent.
type connection interface {
	// ask sends a question under an id, and waits for its end.
	ask(ctx context.Context, id string) error
	io.Closer
}

// A socket is a WebSocket with a JSON value in each message.
type socket struct{ *websocket.Conn }

func dial(ctx context.Context, url string) (socket, error) {
	c, resp, err := websocket.Dial(ctx, url, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // the reason stands in err
	}
	if err == nil {
		c.SetReadLimit(-1) // the hub is our own
	}
	return socket{c}, err
}

// Close closes with the handshake.
func (s socket) Close() error { return s.Conn.Close(websocket.StatusNormalClosure, "") }

// await reads messages until is reports that one is the last, or fails.
func (s socket) await(ctx context.Context, is func(message []byte) (bool, error)) error {
	for {
		_, message, err := s.Read(ctx)
		if err != nil {
			return err
		}
		if end, err := is(message); end || err != nil {
			return err
		}
	}
}

// A pi connection has one session, bound to the agent.
type piConnection struct{ socket }

func connectPi(ctx context.Context, address string) (connection, error) {
	s, err := dial(ctx, "ws://"+address+"/ws/pi")
	if err != nil {
		return nil, err
	}
	c := piConnection{s}
	create := fmt.Sprintf(`{"id":"create","type":"create_session","sessionId":"s","agent":%q}`, agentID)
	if err := c.command(ctx, "create", create); err != nil {
		return nil, err
	}
	return c, c.command(ctx, "switch", `{"id":"switch","type":"switch_session","sessionId":"s"}`)
}

func (c piConnection) ask(ctx context.Context, id string) error {
	return c.command(ctx, id, fmt.Sprintf(`{"id":%q,"type":"prompt","sessionId":"s","message":"hello"}`, id))
}

// command sends a command and waits for its response, which follows the events of a run.
func (c piConnection) command(ctx context.Context, id, frame string) error {
	if err := c.Write(ctx, websocket.MessageText, []byte(frame)); err != nil {
		return err
	}
	return c.await(ctx, func(message []byte) (bool, error) {
		var m struct {
			ID, Type string
			Success  bool
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return false, err
		}
		end := m.Type == "response" && m.ID == id
		if end && !m.Success {
			return false, fmt.Errorf("the hub answers %s", message)
		}
		return end, nil
	})
}

// A restConnection asks over a connection that is kept.
type restConnection struct {
	client http.Client
	url    string
}

func connectREST(_ context.Context, address string) (connection, error) {
	return &restConnection{client: http.Client{Transport: &http.Transport{}}, url: "http://" + address + "/v1/tasks"}, nil
}

func (c *restConnection) ask(ctx context.Context, _ string) error {
	body := fmt.Sprintf(`{"to":%q,"content":"hello"}`, agentID)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := c.client.Do(r)
	if err != nil {
		return err
	}
	events, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	if !strings.Contains(string(events), "\nevent: done\n") {
		return fmt.Errorf("the hub answers %s\n%s", resp.Status, events)
	}
	return nil
}

func (c *restConnection) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// An acpConnection is an ACP peer that sends queries.
type acpConnection struct{ socket }

func connectACP(ctx context.Context, address string) (connection, error) {
	s, err := dial(ctx, "ws://"+address+"/ws/acp?agent_id=asker")
	return acpConnection{s}, err
}

func (c acpConnection) ask(ctx context.Context, id string) error {
	query := fmt.Sprintf(`{"v":1,"id":%q,"from":"asker","to":%q,"kind":"query","payload":{"question":"hello"}}`, id, agentID)
	if err := c.Write(ctx, websocket.MessageText, []byte(query)); err != nil {
		return err
	}
	return c.await(ctx, func(message []byte) (bool, error) {
		var m struct{ Kind, Ref string }
		if err := json.Unmarshal(message, &m); err != nil {
			return false, err
		}
		if m.Kind == "error" {
			return false, fmt.Errorf("the hub answers %s", message)
		}
		return m.Kind == "response" && m.Ref == id, nil
	})
}
