package command

import (
	"context"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bench"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// The hidden commands here are the other processes of a bench: an agent, a crowd of agents
// and the relay.

// peerCommand returns a hidden command that runs until it is interrupted, and writes its
// ready file once it is ready.
func peerCommand(name string, flags func(*cobra.Command), run func(ctx context.Context, ready func(service.Addresses) error) error) *cobra.Command {
	var file string
	c := &cobra.Command{Use: name, Hidden: true, Args: cobra.NoArgs}
	c.Flags().StringVar(&file, "ready-file", "", "")
	flags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		err := run(ctx, func(a service.Addresses) error { return service.WriteReady(file, a) })
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	return c
}

func peerFlags(c *cobra.Command, dialect *string, to *client.Hub) {
	f := c.Flags()
	f.StringVar(dialect, "dialect", "", "")
	f.StringVar(&to.GRPC, "grpc-addr", "", "")
	f.StringVar(&to.URL, "hub", "", "")
}

func benchAgentCommand() *cobra.Command {
	var dialect string
	var to client.Hub
	return peerCommand("agent", func(c *cobra.Command) { peerFlags(c, &dialect, &to) },
		func(ctx context.Context, ready func(service.Addresses) error) error {
			return bench.RunAgent(ctx, dialect, to, ready)
		})
}

func benchRelayCommand() *cobra.Command {
	return peerCommand("relay", func(*cobra.Command) {}, bench.RunRelay)
}

func benchCrowdCommand() *cobra.Command {
	var crowd bench.Crowd
	var to client.Hub
	return peerCommand("crowd", func(c *cobra.Command) {
		peerFlags(c, &crowd.Dialect, &to)
		f := c.Flags()
		f.StringVar(&crowd.Prefix, "prefix", "", "")
		f.IntVar(&crowd.Count, "count", 0, "")
		f.IntVar(&crowd.Share, "share", 0, "")
	}, func(ctx context.Context, ready func(service.Addresses) error) error { return crowd.Run(ctx, to, ready) })
}
