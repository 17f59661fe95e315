package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// relayConn is a WebSocket of the relay that several goroutines write to.
type relayConn struct {
	*ws.Conn
	ctx context.Context //nolint:containedctx // the life of the connection
	mu  sync.Mutex
}

// say sends a frame. A lost peer is noticed by the reader.
func (c *relayConn) say(format string, args ...any) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.Send(c.ctx, fmt.Appendf(nil, format, args...))
}

func (c *relayConn) leave() { _ = c.Close(link.Reason{Cause: link.Normal}) }

// each reads frames into v and calls take for each, until the peer leaves.
func each[T any](c *relayConn, take func(T) error) {
	for {
		b, err := c.Receive(c.ctx)
		if err != nil {
			return
		}
		var f T
		if json.Unmarshal(b, &f) != nil || take(f) != nil {
			return
		}
	}
}

// jsonText encodes a string as JSON.
func jsonText(s string) []byte {
	b, _ := json.Marshal(s) // strings always encode
	return b
}

func timestampNow() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000Z") }

// servePi serves the relay's counterpart of a pi client, which has its own frames.
func (r *relay) servePi(c *relayConn) {
	each(c, func(f relayFrame) error {
		return r.ask(f.To, f.ID, f.Message, func(what relayed, text string) {
			if what == relayedAccepted {
				return
			}
			b, err := json.Marshal(relayFrame{ID: f.ID, Delta: text, Done: what == relayedEnd})
			if err != nil {
				return
			}
			c.mu.Lock()
			defer c.mu.Unlock()
			_ = c.Send(c.ctx, b) // the reader notices a lost client
		})
	})
}

// serveREST answers POST /v1/tasks?wait=true.
func (r *relay) serveREST(w http.ResponseWriter, q *http.Request) {
	var ask struct{ To, Content string }
	if err := json.NewDecoder(q.Body).Decode(&ask); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	id, done := r.newID(), make(chan struct{})
	var whole strings.Builder
	err := r.ask(ask.To, id, ask.Content, func(what relayed, text string) {
		whole.WriteString(text)
		if what == relayedEnd {
			close(done)
		}
	})
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	select {
	case <-done:
	case <-q.Context().Done():
		return
	}
	h := w.Header()
	h.Set("Location", "/v1/tasks/"+id)
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	at := time.Now().UTC().Format(time.RFC3339Nano)
	_, _ = fmt.Fprintf(w, `{"id":"%[1]s","thread":"%[1]s","state":"done","agent":"%[2]s","intent":"ask","to":"%[2]s","from":{"id":"local","dialect":"rest","operator":true},"hops":0,`+
		`"opened_at":"%[3]s","deadline":"%[3]s","receipt":{"task":"%[1]s","stage":"acknowledged","agent":"%[2]s","at":"%[3]s"},`+
		`"answer":{"text":%[4]s,"usage":{"input":0,"output":0},"truncated":false,"tokens_used":0,"end":"done"}}`+"\n", id, ask.To, at, jsonText(whole.String()))
}

// relayedACP is what the relay reads of an envelope.
type relayedACP struct {
	ID, Kind, To string
	Ref          string
	Payload      struct{ Question, Text, Summary string }
}

const acpFormat = `{"v":1,"id":"%s","from":"%s","to":"%s","ts":%d,"kind":"%s","ref":%s,"payload":%s}`

func (r *relay) serveACPClient(c *relayConn) {
	_ = c.say(acpFormat, r.newID(), "hub", "asker", time.Now().UnixMilli(), "discover", "null", `{"extensions":["progress","subscribe"]}`)
	each(c, func(f relayedACP) error {
		var whole strings.Builder
		return r.ask(f.To, f.ID, f.Payload.Question, func(what relayed, text string) {
			whole.WriteString(text)
			if what == relayedEnd {
				answer := fmt.Appendf(nil, `{"data":null,"summary":%s,"truncated":false}`, jsonText(whole.String()))
				_ = c.say(acpFormat, r.newID(), f.To, "asker", time.Now().UnixMilli(), "response", jsonText(f.ID), answer)
			}
		})
	})
}

func (r *relay) serveACPAgent(c *relayConn, agent string) {
	_ = c.say(acpFormat, r.newID(), "hub", agent, time.Now().UnixMilli(), "discover", "null", `{"extensions":["progress","subscribe"]}`)
	r.join(agent, func(id, content string) error {
		question := fmt.Appendf(nil, `{"question":%s,"deadline_ms":30000}`, jsonText(content))
		return c.say(acpFormat, id, "asker", agent, time.Now().UnixMilli(), "query", "null", question)
	})
	each(c, func(f relayedACP) error {
		switch f.Kind {
		case "ping":
			return c.say(acpFormat, r.newID(), "hub", agent, time.Now().UnixMilli(), "pong", jsonText(f.ID), `{"status":"idle","uptime_secs":0,"active_tasks":0,"agent_name":"relay"}`)
		case "progress":
			r.step(f.Ref, relayedText, f.Payload.Text)
		case "response":
			r.step(f.Ref, relayedEnd, "")
		}
		return nil
	})
}

// relayedParallax is what the relay reads of a message of Parallax.
type relayedParallax struct {
	Type, ID string
	Payload  struct {
		TaskID, RequestID, To, Text string
		Input                       struct{ Content string }
	}
}

// registered answers a registration.
func (c *relayConn) registered(id, agent string) error {
	return c.say(`{"type":"registered","id":"%s","timestamp":"%s","payload":{"agentId":"%s","connectionId":"relay","capabilities":[],"config":{"heartbeatInterval":10000,"taskTimeout":30000,"maxConcurrentTasks":64,"extensions":["task_accepted","task_progress","task_request"]}}}`,
		id, timestampNow(), agent)
}

func (r *relay) serveParallaxClient(c *relayConn) {
	each(c, func(f relayedParallax) error {
		if f.Type == "register" {
			return c.registered(f.ID, "asker")
		}
		p := f.Payload
		n, task := 0, r.newID()
		say := func(kind, more string, args ...any) {
			about := fmt.Sprintf(`"requestId":"%[1]s","taskId":"%[2]s","executionId":"%[2]s.1"`, p.RequestID, task)
			_ = c.say(`{"type":"%s","id":"%s","timestamp":"%s","payload":{%s%s}}`, kind, "hub_1", timestampNow(), about, fmt.Sprintf(more, args...))
		}
		return r.ask(p.To, p.RequestID, p.Input.Content, func(what relayed, text string) {
			switch what {
			case relayedAccepted:
				say("task_accepted", "")
			case relayedText:
				n++
				say("task_progress", `,"seq":%d,"text":%s`, n, jsonText(text))
			case relayedEnd:
				say("task_result", `,"status":"completed","result":null,"duration":1`)
			}
		})
	})
}

func (r *relay) serveParallaxAgent(c *relayConn, agent string) {
	each(c, func(f relayedParallax) error {
		switch f.Type {
		case "register":
			if err := c.registered(f.ID, agent); err != nil {
				return err
			}
			r.join(agent, func(id, content string) error {
				return c.say(`{"type":"task","id":"%[1]s","timestamp":"%[2]s","payload":{"taskId":"%[1]s","executionId":"%[1]s.1","patternName":"dragoman.ask","patternVersion":"1.0.0","input":{"content":%[3]s},"timeout":30000,"priority":"normal","context":{"stepIndex":0,"totalSteps":1,"intent":"ask","thread":"%[1]s","requester":"asker"}}}`,
					id, timestampNow(), jsonText(content))
			})
		case "heartbeat":
			return c.say(`{"type":"heartbeat_ack","id":"%s","timestamp":"%s","payload":{}}`, f.ID, timestampNow())
		case "task_accepted":
			r.step(f.Payload.TaskID, relayedAccepted, "")
		case "task_progress":
			r.step(f.Payload.TaskID, relayedText, f.Payload.Text)
		case "task_result":
			r.step(f.Payload.TaskID, relayedEnd, "")
		}
		return nil
	})
}
