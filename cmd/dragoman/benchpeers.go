package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// The commands here are the other processes of a bench: an agent, and a crowd of
// agents. They are hidden; only 'dragoman bench' runs them.

// benchAgent is the id of the agent of a dialect that answers in a bench.
func benchAgent(dialect string) string { return "bench-" + dialect }

// benchDialects are the dialects of agents, in alphabetical order.
func benchDialects() []string { return slices.Sorted(maps.Keys(joins())) }

// peerCommand makes a hidden command that runs until it is interrupted, and says
// in its ready file that it is there.
func peerCommand(name string, flags func(*cobra.Command), run func(ctx context.Context, ready func(Addresses) error) error) *cobra.Command {
	var file string
	c := &cobra.Command{Use: name, Hidden: true, Args: cobra.NoArgs}
	c.Flags().StringVar(&file, "ready-file", "", "")
	flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := run(ctx, func(a Addresses) error { return writeReady(file, a) })
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return c
}

// benchHandler answers a number with so many chunks, and a request to sum up a
// conversation with a sentence. Behind the number may stand what was said earlier.
func benchHandler(_ context.Context, r core.Request, say func(core.Body) error) error {
	first, _, _ := strings.Cut(r.Content, "\n")
	n, err := strconv.Atoi(strings.TrimSpace(first))
	switch {
	case err != nil && strings.HasPrefix(first, "Sum up "):
		return say(core.Text{Text: "Numbers were given and answered."})
	case err != nil:
		return core.NewFault(core.CodeInvalid, "send how many chunks you want")
	}
	chunk := strings.Repeat("x", benchChunk)
	for range n {
		if err := say(core.Text{Text: chunk}); err != nil {
			return err
		}
	}
	return nil
}

func benchAgentCommand(streams) *cobra.Command {
	var dialect string
	var to place
	return peerCommand("agent", func(c *cobra.Command) { peerFlags(c, &dialect, &to) },
		func(ctx context.Context, ready func(Addresses) error) error {
			card := core.Card{
				ID: core.AgentID(benchAgent(dialect)), MaxConcurrent: benchParallel, Features: core.FeatureStreaming | core.FeatureCancellation,
			}
			var failed error
			err := joins()[dialect](ctx, to, card, benchHandler, func(asker) { failed = ready(Addresses{}) }, slog.New(slog.DiscardHandler))
			return errors.Join(failed, err)
		})
}

func peerFlags(c *cobra.Command, dialect *string, to *place) {
	f := c.Flags()
	f.StringVar(dialect, "dialect", "", "")
	f.StringVar(&to.grpc, "grpc-addr", "", "")
	f.StringVar(&to.http, "hub", "", "")
}

// crowdCapability is what the agents of a crowd can do.
const crowdCapability = "crowded"

func benchCrowdCommand(streams) *cobra.Command {
	var dialect, prefix string
	var count, share int
	var to place
	return peerCommand("crowd", func(c *cobra.Command) {
		peerFlags(c, &dialect, &to)
		f := c.Flags()
		f.StringVar(&prefix, "prefix", "", "")
		f.IntVar(&count, "count", 0, "")
		f.IntVar(&share, "share", 0, "")
	}, func(ctx context.Context, ready func(Addresses) error) error {
		join := joins()[dialect]
		if share > 0 {
			join = joinCovenSharing(share)
		}
		var group sync.WaitGroup
		defer group.Wait()
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		failed := make(chan error, count)
		for i := range count {
			in := make(chan struct{})
			card := core.Card{ID: core.AgentID(fmt.Sprintf("%s-%d", prefix, i)), Capabilities: []string{crowdCapability}, Features: core.FeatureCancellation}
			group.Go(func() {
				failed <- join(ctx, to, card, benchHandler, func(asker) { close(in) }, slog.New(slog.DiscardHandler))
			})
			select {
			case <-in:
			case err := <-failed:
				return err
			}
		}
		if err := ready(Addresses{}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		}
	})
}

// joinCovenSharing joins Coven agents of which so many share a connection, so that a
// large crowd needs few files. Agents must join one after the other.
func joinCovenSharing(share int) join {
	var calls wire.CovenControlClient
	joined := 0
	return func(ctx context.Context, to place, card core.Card, handle core.Handler, in func(asker), _ *slog.Logger) error {
		if joined%share == 0 {
			cc, err := grpcserver.Dial(ctx, to.grpc, grpcserver.DialOptions{})
			if err != nil {
				return err
			}
			calls = wire.NewCovenControlClient(cc) // it lives as long as the process
		}
		joined++
		conn, err := grpcserver.Open(ctx, calls.AgentStream, grpcserver.OpenOptions{})
		if err != nil {
			return err
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		return covenclient.Work(ctx, conn, card, handle, covenclient.WithJoined(func(*wire.Welcome) { in(askByTool) }))
	}
}
