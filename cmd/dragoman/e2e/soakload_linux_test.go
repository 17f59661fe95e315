package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/demo"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// soakPause is the longest time between two questions of a client.
const soakPause = 400 * time.Millisecond

// soakPatience is longer than every deadline, also on a busy machine.
const soakPatience = 3 * time.Minute

// start starts the agents, waits until the steady ones are there, and starts the clients.
func (s *soak) start() {
	s.workers.Go(func() { s.late.run(s.ctx) })
	s.workers.Go(s.ledger.run)
	for _, dialect := range demo.Answerers {
		s.workers.Go(func() {
			for s.ctx.Err() == nil {
				s.join(s.ctx, dialect, dialect+"-steady", []string{"soak"})
			}
		})
		s.workers.Go(func() { // who asks is not asked, which would be a loop
			for s.ctx.Err() == nil {
				s.join(s.ctx, dialect, dialect+"-asker", nil)
			}
		})
		for n := range 2 {
			s.workers.Go(func() {
				for s.ctx.Err() == nil {
					ctx, leave := context.WithTimeout(s.ctx, rand.N(20*time.Second))
					s.join(ctx, dialect, fmt.Sprintf("%s-churn-%d", dialect, n), nil)
					leave()
					pauseFor(s.ctx, rand.N(2*time.Second))
				}
			})
		}
	}
	for _, dialect := range demo.Answerers {
		s.untilJoined(dialect + "-steady")
		s.untilJoined(dialect + "-asker")
	}
	for dialect, ask := range s.askers() {
		for range 2 {
			s.workers.Go(func() {
				for s.ctx.Err() == nil {
					s.ask(dialect, ask)
				}
			})
		}
	}
	s.workers.Go(s.misbehave)
	s.workers.Go(s.readSlowly)
	s.startFaults()
}

func (s *soak) untilJoined(id string) {
	s.hub.until(id+" has joined", func() error {
		var agent struct{ ID string }
		return s.hub.Get(s.ctx, "/v1/agents/"+id, &agent)
	})
}

// join is an agent until its connection or ctx ends.
func (s *soak) join(ctx context.Context, dialect, id string, capabilities []string) {
	asks := make(chan client.AskFunc, 1)
	card := core.Card{ID: core.AgentID(id), Capabilities: capabilities, MaxConcurrent: 32, Features: core.FeatureStreaming | core.FeatureCancellation}
	handle := func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		if verb, rest, _ := strings.Cut(r.Content, " "); verb == "forward" {
			ask := <-asks
			asks <- ask
			to, key, _ := strings.Cut(rest, " ")
			text, err := ask(ctx, to, key)
			if err != nil {
				return err
			}
			return say(core.Text{Text: text})
		}
		if strings.HasPrefix(r.Content, "burst") {
			return sayBurst(say)
		}
		return answerSlowly(ctx, r, say)
	}
	err := service.Joins()[dialect](ctx, client.Hub{URL: s.hub.URL, GRPC: s.hub.grpc}, card, handle, func(a client.AskFunc) { asks <- a }, slog.New(slog.DiscardHandler))
	if ctx.Err() == nil {
		s.count(fmt.Sprintf("%s lost its connection", id))
		if strings.HasSuffix(id, "-steady") {
			s.wrong("agent %s lost its connection: %w", id, err)
		}
	}
	pauseFor(ctx, betweenTries)
}

// soakAsk asks an agent and returns the text of the answer.
type soakAsk func(ctx context.Context, h *clusterHub, to, key string) (string, error)

// askers are the clients of every dialect.
func (s *soak) askers() map[string]soakAsk {
	by := func(dialect string) soakAsk {
		return func(ctx context.Context, h *clusterHub, to, key string) (string, error) {
			return askAndWait(ctx, h, dialect+"-asker", "forward "+to+" "+key)
		}
	}
	return map[string]soakAsk{
		"rest": s.askEvents, "rest, waiting": askAndWait, "acp": askACPAt, "pi": askPiOnce, "a2a": askA2AAt, "mcp": askMCPTool, "editor": askEditor,
		"coven": by("coven"), "parallax": by("parallax"), "native": by("native"), "pack": askPack,
	}
}

// steady are the agents that never leave.
var steady = []string{
	"coven-steady", "parallax-steady", "acp-steady", "native-steady",
	"text-child", "native-child", "editor-child", "pi-child", "a2a-remote",
}

// ask asks an agent. One that never leaves has to answer.
func (s *soak) ask(dialect string, ask soakAsk) {
	to, stays := steady[rand.IntN(len(steady))], true
	switch rand.IntN(10) {
	case 0, 1:
		to, stays = fmt.Sprintf("%s-churn-%d", demo.Answerers[rand.IntN(len(demo.Answerers))], rand.IntN(2)), false
	case 2:
		if dialect != "a2a" { // whose paths name an agent
			to = "capability:soak"
		}
	}
	key := s.newKey()
	ctx, cancel := context.WithTimeout(s.ctx, soakPatience)
	defer cancel()
	began := time.Now()
	text, err := ask(ctx, s.hub, to, key)
	switch {
	case s.ctx.Err() != nil:
		return
	case ctx.Err() != nil:
		s.wrong("%s asked %s %q and had no end after %v: %w", dialect, to, key, soakPatience, err)
	case err != nil && stays && isRefusal(err):
		s.unanswered(dialect, began, err)
	case err != nil && stays:
		s.wrong("%s asked %s, which does not leave, %q, and after %v got %w", dialect, to, key, time.Since(began), err)
	case err != nil:
		s.count(dialect + ": not answered, by an agent that comes and goes")
	case strings.TrimSpace(text) != slowAnswer(key):
		s.wrong("%s asked %s %q and got %q, want %q", dialect, to, key, text, slowAnswer(key))
	default:
		s.count(dialect + outcomeAnswered)
	}
	pauseFor(s.ctx, rand.N(soakPause))
}

// misbehave has agents of Coven that behave in every way that agents were seen to behave, and asks
// them in rounds. Every call has one result.
func (s *soak) misbehave() {
	cc, err := grpc.NewClient(s.hub.grpc, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		s.wrong("connecting: %w", err)
		return
	}
	defer cc.Close()
	wires := wire.NewCovenControlClient(cc)
	var agents sync.WaitGroup
	defer agents.Wait()
	to := []string{"capability:soaking"}
	for _, a := range soakAgents() {
		agents.Go(func() { a.run(s.ctx, wires) })
		to = append(to, a.id)
	}
	for round := 0; s.ctx.Err() == nil; round++ {
		results, err := soakAsker(s.ctx, wires, fmt.Sprintf("asker %d", round), to, 60, 8)
		if s.ctx.Err() != nil {
			return
		}
		if err != nil {
			s.wrong("asking the agents that misbehave: %w", err)
			return
		}
		for code, n := range results {
			switch code {
			case "", "internal", "timeout", "unreachable", "unknown_agent", "overloaded":
				s.mu.Lock()
				s.counts[fmt.Sprintf("agents that misbehave: %q", code)] += n
				s.mu.Unlock()
			default:
				s.wrong("an agent that misbehaves ended a task as %q", code)
			}
		}
		pauseFor(s.ctx, 5*time.Second)
	}
}
