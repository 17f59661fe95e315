package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// agentID returns the id of the agent of a dialect.
func agentID(dialect string) string { return "bench-" + dialect }

// dialects returns the dialects of agents in alphabetical order.
func dialects() []string { return slices.Sorted(maps.Keys(service.Joins())) }

// answer is the core.Handler of every agent: it answers a number with as many chunks, and a
// request for a summary with a sentence. Earlier turns may follow the number.
func answer(_ context.Context, r core.Request, say func(core.Body) error) error {
	first, _, _ := strings.Cut(r.Content, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	switch {
	case err != nil && strings.HasPrefix(first, "Sum up "):
		return say(core.Text{Text: "Numbers were given and answered."})
	case err != nil:
		return core.NewFault(core.CodeInvalid, "send the number of chunks")
	}
	chunk := strings.Repeat("x", chunkBytes)
	for range n {
		if err := say(core.Text{Text: chunk}); err != nil {
			return err
		}
	}
	return nil
}

// crowdCapability is the capability of the agents of a crowd.
const crowdCapability = "crowded"

// RunAgent joins a hub as the agent of a dialect and answers until ctx ends. ready is
// called once the hub has accepted it.
func RunAgent(ctx context.Context, dialect string, to client.Hub, ready func(service.Addresses) error) error {
	card := core.Card{
		ID: core.AgentID(agentID(dialect)), MaxConcurrent: parallel, Features: core.FeatureStreaming | core.FeatureCancellation,
	}
	var failed error
	err := service.Joins()[dialect](ctx, to, card, answer, func(client.AskFunc) { failed = ready(service.Addresses{}) }, slog.New(slog.DiscardHandler))
	return errors.Join(failed, err)
}

// Crowd are agents that join from one process.
type Crowd struct {
	Dialect, Prefix string
	// Count is their number, and Share the number of Coven agents on one connection;
	// with 0 each agent has its own.
	Count, Share int
}

// Run has the agents join one after the other, and answer until ctx ends. ready is called
// once all have joined.
func (c Crowd) Run(ctx context.Context, to client.Hub, ready func(service.Addresses) error) error {
	join := service.Joins()[c.Dialect]
	if c.Share > 0 {
		join = joinCovenSharing(c.Share)
	}
	var group sync.WaitGroup
	defer group.Wait()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	failed := make(chan error, c.Count)
	for i := range c.Count {
		in := make(chan struct{})
		card := core.Card{ID: core.AgentID(fmt.Sprintf("%s-%d", c.Prefix, i)), Capabilities: []string{crowdCapability}, Features: core.FeatureCancellation}
		group.Go(func() {
			failed <- join(ctx, to, card, answer, func(client.AskFunc) { close(in) }, slog.New(slog.DiscardHandler))
		})
		select {
		case <-in:
		case err := <-failed:
			return err
		}
	}
	if err := ready(service.Addresses{}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// joinCovenSharing joins Coven agents with share of them on one connection, so that a large
// crowd needs few files. Agents must join one after the other.
func joinCovenSharing(share int) client.JoinFunc {
	var calls wire.CovenControlClient
	joined := 0
	return func(ctx context.Context, to client.Hub, card core.Card, handle core.Handler, in func(client.AskFunc), _ *slog.Logger) error {
		if joined%share == 0 {
			cc, err := grpcserver.Dial(ctx, to.GRPC, grpcserver.DialOptions{})
			if err != nil {
				return err
			}
			calls = wire.NewCovenControlClient(cc) // open until the process ends
		}
		joined++
		conn, err := grpcserver.Open(ctx, calls.AgentStream, grpcserver.OpenOptions{})
		if err != nil {
			return err
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		return covenclient.Work(ctx, conn, card, handle, covenclient.WorkOptions{Joined: func(*wire.Welcome) { in(client.AskByTool) }})
	}
}
