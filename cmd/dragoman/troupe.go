package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
)

// Who asks and who answers in the demo: pi-server knows clients only.
var (
	askers    = []string{"coven", "parallax", "acp", "pi"}
	answerers = []string{"coven", "parallax", "acp"}
)

// reply is what an agent of the demo answers.
func reply(agent, asked string) string { return agent + " heard: " + strings.ToUpper(asked) }

// errand is what an agent of the demo is told when it shall ask another itself.
type errand struct {
	To      string `json:"to"`
	Content string `json:"content"`
}

// troupe are the agents and clients of the demo.
type troupe struct {
	asks   map[string]asker
	closes []func()
	group  sync.WaitGroup
}

func (t *troupe) ask(ctx context.Context, from, to, content string) (string, error) {
	return t.asks[from](ctx, to, content)
}

// leave closes everything and waits until nothing runs any more.
func (t *troupe) leave() {
	for _, c := range t.closes {
		c()
	}
	t.group.Wait()
}

// gather lets an agent of each dialect join, and connects a client of those that
// have clients. leave must be called, whatever the error.
func gather(ctx context.Context, s *Service) (*troupe, error) {
	ctx, goHome := context.WithCancel(ctx)
	t := &troupe{asks: map[string]asker{}, closes: []func(){goHome}}
	to := place{http: "http://" + s.bound.HTTP, grpc: s.bound.GRPC}
	for name, connect := range joins() {
		a := &actor{name: name}
		joined := make(chan struct{})
		ended := make(chan error, 1)
		card := core.Card{
			ID: core.AgentID(name), Name: "the " + name + " agent", Capabilities: []string{"talk"}, MaxConcurrent: 4,
			Features: core.FeatureStreaming | core.FeatureCancellation,
		}
		t.group.Go(func() {
			ended <- connect(ctx, to, card, a.answer, a.onStage(joined), s.log)
		})
		select {
		case <-joined:
		case err := <-ended:
			return t, fmt.Errorf("the %s agent could not join: %w", name, err)
		}
		t.asks[name] = bySending(to, name)
	}
	return t, errors.Join(t.connectACP(ctx, to), t.connectPi(ctx, s.bound.Pi))
}

// actor is an agent of the demo.
type actor struct {
	name string
	asks asker
	once sync.Once
}

// onStage notes how the actor asks others, and closes joined.
func (a *actor) onStage(joined chan struct{}) func(asker) {
	return func(asks asker) {
		a.once.Do(func() {
			a.asks = asks
			close(joined)
		})
	}
}

// answer is a core.Handler. It answers in words, one at a time; sent on an
// errand, it asks another agent and passes on the answer.
func (a *actor) answer(ctx context.Context, r core.Request, say func(core.Body) error) error {
	text := reply(a.name, r.Content)
	var e errand
	if a.asks != nil && json.Unmarshal([]byte(r.Content), &e) == nil && e.To != "" {
		var err error
		if text, err = a.asks(ctx, e.To, e.Content); err != nil {
			return err
		}
	}
	for _, word := range strings.SplitAfter(text, " ") {
		if err := say(core.Text{Text: word}); err != nil {
			return err
		}
	}
	return nil
}

// bySending asks by sending an agent on an errand, through REST.
func bySending(to place, agent string) asker {
	hub := to.client()
	return func(ctx context.Context, other, content string) (string, error) {
		task, err := json.Marshal(errand{other, content})
		if err != nil {
			return "", err
		}
		resp, err := hub.do(ctx, http.MethodPost, "/v1/tasks?wait=true", "application/json", asking{To: agent, Intent: "ask", Content: string(task)})
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		var done struct {
			Answer struct {
				Text  string      `json:"text"`
				Fault *core.Fault `json:"fault"`
			} `json:"answer"`
		}
		if err := json.NewDecoder(resp.Body).Decode(&done); err != nil {
			return "", err
		}
		if done.Answer.Fault != nil {
			return "", done.Answer.Fault
		}
		return done.Answer.Text, nil
	}
}

func (t *troupe) connectACP(ctx context.Context, to place) error {
	conn, err := dialWS(ctx, to, "/ws/acp", nil, acpBytes)
	if err != nil {
		return err
	}
	c := acp.NewClient(conn, acp.ClientOptions{ID: "acp-client", Progress: true})
	t.closes = append(t.closes, c.Close)
	t.asks["acp"] = func(ctx context.Context, other, content string) (string, error) {
		a, err := c.Ask(ctx, core.Request{To: core.ToAgent(core.AgentID(other)), Content: content}, nil)
		return a.Text, err
	}
	return nil
}

func (t *troupe) connectPi(ctx context.Context, addr string) error {
	conn, err := dialWS(ctx, place{http: "http://" + addr}, "/", nil, 64<<20)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	heard := map[string]*pi.Transcript{}
	c, err := pi.Connect(ctx, conn, func(f pi.Frame) {
		mu.Lock()
		defer mu.Unlock()
		if tr := heard[f.SessionID]; tr != nil {
			tr.Add(f)
		}
	})
	if err != nil {
		return err
	}
	t.closes = append(t.closes, func() { c.Close() })
	t.asks["pi"] = func(ctx context.Context, other, content string) (string, error) {
		id := "with-" + other
		tr := &pi.Transcript{}
		mu.Lock()
		heard[id] = tr
		mu.Unlock()
		for _, command := range []map[string]any{
			{"type": "create_session", "sessionId": id, "agent": other},
			{"type": "switch_session", "sessionId": id},
			{"type": "prompt", "sessionId": id, "message": content},
		} {
			f, err := c.Do(ctx, command)
			if err != nil {
				return "", err
			}
			if !f.Success {
				return "", errors.New(f.Error)
			}
		}
		mu.Lock()
		defer mu.Unlock()
		if tr.ErrorMessage != "" {
			return "", errors.New(tr.ErrorMessage)
		}
		return tr.Deltas.String(), nil
	}
	return nil
}
