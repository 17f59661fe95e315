package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// The requesters and agents of the demo. The other dialects have only clients, or agents that
// are programs of others.
var (
	Requesters = []string{"coven", "parallax", "acp", "native", "pi", "editor", "a2a", "mcp"}
	Answerers  = []string{"coven", "parallax", "acp", "native"}
)

// Reply returns the answer of a demo agent.
func Reply(agent, asked string) string { return agent + " heard: " + strings.ToUpper(asked) }

// askAnother is the content of a request that makes a demo agent ask another.
type askAnother struct {
	To      string `json:"to"`
	Content string `json:"content"`
}

// Agents are the agents and clients of the demo, by name.
type Agents struct {
	asks   map[string]client.AskFunc
	closes []func()
	group  sync.WaitGroup
}

// Ask has one of the Requesters ask one of the Answerers.
func (all *Agents) Ask(ctx context.Context, from, to, content string) (string, error) {
	return all.asks[from](ctx, to, content)
}

// Leave closes everything and waits until all goroutines have ended.
func (all *Agents) Leave() {
	for _, c := range all.closes {
		c()
	}
	all.group.Wait()
}

// Join joins an agent of each dialect, and connects clients of the others. Leave must
// be called, also after an error.
func Join(ctx context.Context, at service.Addresses, log *slog.Logger) (*Agents, error) {
	ctx, cancel := context.WithCancel(ctx)
	all := &Agents{asks: map[string]client.AskFunc{}, closes: []func(){cancel}}
	to := client.Hub{URL: "http://" + at.HTTP, GRPC: at.GRPC}
	for name, connect := range service.Joins() {
		a := &agent{name: name}
		joined := make(chan struct{})
		ended := make(chan error, 1)
		card := core.Card{
			ID: core.AgentID(name), Name: "the " + name + " agent", Capabilities: []string{"talk"}, MaxConcurrent: 4,
			Features: core.FeatureStreaming | core.FeatureCancellation,
		}
		all.group.Go(func() {
			ended <- connect(ctx, to, card, a.answer, a.onJoined(joined), log)
		})
		select {
		case <-joined:
		case err := <-ended:
			return all, fmt.Errorf("the %s agent could not join: %w", name, err)
		}
		all.asks[name] = bySending(to, name)
	}
	all.asks["editor"], all.asks["a2a"], all.asks["mcp"] = overEditor(to), overA2A(to), overMCP(to)
	all.asks["acp"], all.asks["pi"] = overACP(to), overPi(client.Hub{URL: "http://" + at.Pi})
	return all, nil
}

// agent is an agent of the demo.
type agent struct {
	name string
	asks client.AskFunc
	once sync.Once
}

// onJoined returns a function that stores asks and closes joined.
func (a *agent) onJoined(joined chan struct{}) func(client.AskFunc) {
	return func(asks client.AskFunc) {
		a.once.Do(func() {
			a.asks = asks
			close(joined)
		})
	}
}

// answer is a core.Handler. It replies word by word; if the content is an askAnother, it asks
// the other agent and passes on the answer.
func (a *agent) answer(ctx context.Context, r core.Request, say func(core.Body) error) error {
	text := Reply(a.name, r.Content)
	var e askAnother
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

// bySending returns an AskFunc that makes an agent ask another, through REST.
func bySending(to client.Hub, agent string) client.AskFunc {
	hub := to.Client()
	return func(ctx context.Context, other, content string) (string, error) {
		task, err := json.Marshal(askAnother{other, content})
		if err != nil {
			return "", err
		}
		resp, err := hub.Do(ctx, http.MethodPost, "/v1/tasks?wait=true", "application/json", client.TaskRequest{To: agent, Intent: "ask", Content: string(task)})
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
