package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	coven "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// A repeatable sends a request with a key to a hub, until that takes it, and returns by what the hub
// names it; "" where the dialect does not.
type repeatable func(t *testing.T, h *clusterHub, key, content string) (id string)

// A request that is sent again, in each dialect that has keys: to two hubs at once, and to another one
// after its hub was killed.
func TestARequestThatIsSentAgainOpensOneTaskInTheCluster(t *testing.T) {
	t.Parallel()
	all := startCluster(t, 3)
	a, b, c := all[0], all[1], all[2]
	w := joinWorker(t, b, "worker")
	for _, h := range all {
		h.until(h.name+" knows the agent", func() error { return h.Get(t.Context(), "/v1/agents/worker", new(any)) })
	}
	dialects := map[string]repeatable{"coven": covenRepeatable, "a2a": a2aRepeatable, "acp": acpRepeatable}
	for name, send := range dialects {
		t.Run(name+" at two hubs at once", func(t *testing.T) {
			for i := range 5 {
				var ids [2]string
				var sending sync.WaitGroup
				for k, h := range []*clusterHub{a, c} {
					sending.Go(func() { ids[k] = send(t, h, fmt.Sprintf("%s-%d", name, i), "wait "+name) })
				}
				sending.Wait()
				if ids[0] != ids[1] {
					t.Errorf("got %s at a and %s at c, want one task", ids[0], ids[1])
				}
				w.takes(t, "wait "+name)
				w.takesNoMore(t, "worker", a, c)
			}
		})
	}
	t.Run("acp gets its answer at both", func(t *testing.T) { acpAnswersAtBoth(t, a, c, w) })
	ids := map[string]string{}
	for name, send := range dialects {
		ids[name] = send(t, a, name+"-last", "wait at a")
	}
	b.until("the hub of the agent has the tasks", func() error { // what is on its way there dies with a, and is asked again
		var agent struct{ Load core.Load }
		err := b.Get(t.Context(), "/v1/agents/worker", &agent)
		return cmp.Or(err, notYet(agent.Load.Active+agent.Load.Queued == len(dialects), fmt.Sprintf("got %+v", agent.Load)))
	})
	a.kill()
	for name, send := range dialects {
		if id := send(t, c, name+"-last", "wait at a"); id != ids[name] {
			t.Errorf("%s: got %s at c after a was killed, want %s", name, id, ids[name])
		}
	}
	for range dialects {
		w.takes(t, "wait at a")
	}
	w.takesNoMore(t, "worker", b, c)
}

// takes waits until the agent, which does one thing at a time, is asked something, and lets it do that.
func (w *worker) takes(t *testing.T, what string) {
	t.Helper()
	select {
	case got := <-w.asked:
		if got != what {
			t.Errorf("got %q asked, want %q", got, what)
		}
	case <-time.After(watchdog):
		t.Fatalf("nobody has asked %q", what)
	}
	w.release <- struct{}{}
}

// takesNoMore fails the test if the agent is to do more than it has done. Hubs are asked for something
// else, one after the other, behind everything that they were asked before; an agent that does one thing
// at a time takes what was given to it before that first.
func (w *worker) takesNoMore(t *testing.T, id string, hubs ...*clusterHub) {
	t.Helper()
	for _, h := range hubs {
		last := "wait for nothing else at " + h.name
		var task struct{ ID string }
		h.until("hub "+h.name+" takes the last question", func() error {
			return h.Post(t.Context(), "/v1/tasks", map[string]string{"to": id, "content": last}, &task)
		})
		w.takes(t, last)
	}
}

func covenRepeatable(t *testing.T, h *clusterHub, key, content string) (id string) {
	h.until("hub "+h.name+" takes the message", func() error {
		cc, err := grpcserver.Dial(t.Context(), h.grpc, grpcserver.DialOptions{})
		if err != nil {
			return err
		}
		defer cc.Close()
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		got, err := coven.NewClientServiceClient(cc).SendMessage(ctx, &coven.ClientSendMessageRequest{ConversationKey: "worker", Content: content, IdempotencyKey: key})
		id = got.GetMessageId()
		return err
	})
	return id
}

func a2aRepeatable(t *testing.T, h *clusterHub, key, content string) (id string) {
	body := string(plainJSON(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": map[string]any{
		"message":       map[string]any{"messageId": key, "role": "ROLE_USER", "parts": []any{map[string]any{"text": content}}},
		"configuration": map[string]any{"returnImmediately": true},
	}}))
	h.until("hub "+h.name+" takes the message", func() error {
		_, text := said(t, h, http.MethodPost, "/a2a/worker", body, "A2A-Version: 1.0")
		var r struct {
			Result struct{ Task struct{ ID string } }
		}
		if err := json.Unmarshal([]byte(text), &r); err != nil || r.Result.Task.ID == "" {
			return errors.New(text)
		}
		id = r.Result.Task.ID
		return nil
	})
	return id
}

func acpPeerAt(t *testing.T, h *clusterHub, id string) *ws.Conn {
	t.Helper()
	conn, err := client.DialWebSocket(t.Context(), client.Hub{URL: h.URL}, "/ws/acp", http.Header{"X-Agent-Id": {id}}, client.MaxACPBytes)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// acpRepeatable delegates, and returns once the hub has acknowledged it.
func acpRepeatable(t *testing.T, h *clusterHub, key, content string) string {
	conn := acpPeerAt(t, h, "delegator")
	defer conn.Close(link.Reason{Cause: link.Normal})
	e := acpwire.Envelope{ID: key, From: "delegator", To: "worker", Kind: acpwire.KindDelegate, Payload: plainJSON(acpwire.Delegate{Task: content, DeadlineMS: watchdog.Milliseconds()})}
	h.until("hub "+h.name+" takes the delegate", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		if err := conn.Send(ctx, e.Encode()); err != nil {
			return err
		}
		for {
			raw, err := conn.Receive(ctx)
			if err != nil {
				return err
			}
			if answer, err := acpwire.Decode(raw, client.MaxACPBytes); err != nil || answer.Ref != key {
				continue
			} else if answer.Kind == acpwire.KindAck {
				return nil
			}
			if !strings.Contains(string(raw), "again") {
				t.Errorf("got %s, want an ack", raw)
			}
			return errors.New(string(raw))
		}
	})
	return ""
}

// A query that comes to two hubs is asked once, and answered at both.
func acpAnswersAtBoth(t *testing.T, a, c *clusterHub, w *worker) {
	e := acpwire.Envelope{ID: "query", From: "asker", To: "worker", Kind: acpwire.KindQuery, Payload: plainJSON(acpwire.Query{Question: plainJSON("wait for both"), DeadlineMS: watchdog.Milliseconds()})}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	var conns []*ws.Conn
	for _, h := range []*clusterHub{a, c} {
		conn := acpPeerAt(t, h, "asker")
		defer conn.Close(link.Reason{Cause: link.Normal})
		if err := conn.Send(ctx, e.Encode()); err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
	}
	w.takes(t, "wait for both")
	for _, conn := range conns {
		for {
			raw, err := conn.Receive(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if answer, err := acpwire.Decode(raw, client.MaxACPBytes); err == nil && answer.Ref == e.ID {
				if answer.Kind != acpwire.KindResponse || !strings.Contains(string(raw), "WAIT FOR BOTH") {
					t.Errorf("got %s, want the answer", raw)
				}
				break
			}
		}
	}
	w.takesNoMore(t, "worker", a, c)
}
