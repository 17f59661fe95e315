package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/coder/websocket"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// A dialect is a way to ask the hub, and what is measured of it.
type dialect struct {
	name    string
	connect func(ctx context.Context, hub addresses) (connection, error)
	more    load // what is compared with few questions
}

// The client whose chunks are counted wants no snapshots: with them it gets fewer deltas the longer the answer is.
var dialects = []dialect{
	{"pi", connectPi("all"), load{many, 0}},
	{"REST", connectREST, load{many, 0}},
	{"ACP", connectACP, load{many, 0}},
	{"Coven client", connectCoven, load{many, 0}},
	{"pi, a further chunk", connectPi("none"), load{few, further}},
}

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
type piConnection struct {
	socket
	seen *os.File
}

// connectPi returns what connects a client that wants all snapshots, or none.
func connectPi(snapshots string) func(ctx context.Context, hub addresses) (connection, error) {
	return func(ctx context.Context, hub addresses) (connection, error) {
		s, err := dial(ctx, "ws://"+hub.HTTP+"/ws/pi?snapshots="+snapshots)
		if err != nil {
			return nil, err
		}
		c := piConnection{s, hub.seen}
		create := fmt.Sprintf(`{"id":"create","type":"create_session","sessionId":"s","agent":%q}`, agentID)
		if err := c.command(ctx, "create", create); err != nil {
			return nil, err
		}
		return c, c.command(ctx, "switch", `{"id":"switch","type":"switch_session","sessionId":"s"}`)
	}
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
			Event    struct{ AssistantMessageEvent struct{ Type string } }
		}
		if err := json.Unmarshal(message, &m); err != nil {
			return false, err
		}
		if m.Event.AssistantMessageEvent.Type == "text_delta" {
			if _, err := c.seen.WriteString("\n"); err != nil {
				return false, err
			}
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

func connectREST(_ context.Context, hub addresses) (connection, error) {
	return &restConnection{client: http.Client{Transport: &http.Transport{}}, url: "http://" + hub.HTTP + "/v1/tasks"}, nil
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

func connectACP(ctx context.Context, hub addresses) (connection, error) {
	s, err := dial(ctx, "ws://"+hub.HTTP+"/ws/acp?agent_id=asker")
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

// A covenConnection is a client of Coven's ClientService: it talks in one conversation and reads the stream of its events.
type covenConnection struct {
	*grpc.ClientConn
	service wire.ClientServiceClient
	events  grpc.ServerStreamingClient[wire.ClientStreamEvent]
}

func connectCoven(ctx context.Context, hub addresses) (connection, error) {
	cc, err := grpc.NewClient(hub.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	c := covenConnection{ClientConn: cc, service: wire.NewClientServiceClient(cc)}
	if c.events, err = c.service.StreamEvents(ctx, &wire.StreamEventsRequest{ConversationKey: agentID}); err == nil {
		_, err = c.events.Header() // from here on the stream has every event
	}
	if err != nil {
		return nil, errors.Join(err, cc.Close())
	}
	return c, nil
}

func (c covenConnection) ask(ctx context.Context, id string) error {
	_, err := c.service.SendMessage(ctx, &wire.ClientSendMessageRequest{ConversationKey: agentID, Content: "hello", IdempotencyKey: id})
	for err == nil {
		var m *wire.ClientStreamEvent
		if m, err = c.events.Recv(); m.GetDone() != nil {
			return nil
		}
		if failed := m.GetError(); failed != nil {
			return fmt.Errorf("the hub answers %s", failed.GetMessage())
		}
	}
	return err
}
