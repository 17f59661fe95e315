package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// The commands here are the other processes of a bench: an agent, a plain relay,
// and a crowd of idle agents. They are hidden; only 'dragoman bench' runs them.

const benchAgent = "bench"

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

// benchHandler answers a number with so many chunks.
func benchHandler(_ context.Context, r core.Request, say func(core.Body) error) error {
	n, err := strconv.Atoi(strings.TrimSpace(r.Content))
	if err != nil {
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
	var addr string
	return peerCommand("agent", func(c *cobra.Command) { c.Flags().StringVar(&addr, "grpc-addr", "", "") },
		func(ctx context.Context, ready func(Addresses) error) error {
			card := core.Card{ID: benchAgent, MaxConcurrent: benchParallel, Features: core.FeatureStreaming | core.FeatureCancellation}
			var failed error
			err := joinCoven(ctx, place{grpc: addr}, card, benchHandler, func(asker) { failed = ready(Addresses{GRPC: addr}) }, slog.New(slog.DiscardHandler))
			return errors.Join(failed, err)
		})
}

func benchCrowdCommand(streams) *cobra.Command {
	var dialect, prefix string
	var count int
	var to place
	return peerCommand("crowd", func(c *cobra.Command) {
		f := c.Flags()
		f.StringVar(&dialect, "dialect", "", "")
		f.StringVar(&prefix, "prefix", "", "")
		f.IntVar(&count, "count", 0, "")
		f.StringVar(&to.grpc, "grpc-addr", "", "")
		f.StringVar(&to.http, "hub", "", "")
	}, func(ctx context.Context, ready func(Addresses) error) error {
		var group sync.WaitGroup
		defer group.Wait()
		ctx, leave := context.WithCancel(ctx)
		defer leave()
		failed := make(chan error, count)
		for i := range count {
			in := make(chan struct{})
			card := core.Card{ID: core.AgentID(fmt.Sprintf("%s-%d", prefix, i)), Features: core.FeatureCancellation}
			group.Go(func() {
				failed <- joins()[dialect](ctx, to, card, benchHandler, func(asker) { close(in) }, slog.New(slog.DiscardHandler))
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

// benchRelayCommand is a relay between a WebSocket and a gRPC stream: what the
// same two libraries cost without a hub.
func benchRelayCommand(streams) *cobra.Command {
	return peerCommand("relay", func(*cobra.Command) {}, func(ctx context.Context, ready func(Addresses) error) error {
		grpcListener, err := listen(ctx, "127.0.0.1:0")
		if err != nil {
			return err
		}
		httpListener, err := listen(ctx, "127.0.0.1:0")
		if err != nil {
			return err
		}
		r := &relay{agent: make(chan *relayAgent, 1), grpc: grpcserver.New(grpcserver.Options{})}
		r.grpc.Register(&wire.CovenControl_ServiceDesc, coven.NewService(r.serveAgent))
		web := &http.Server{Handler: http.HandlerFunc(r.serveClient), ReadHeaderTimeout: patience}
		var group sync.WaitGroup
		failed := make(chan error, 2)
		group.Go(func() { failed <- r.grpc.Serve(grpcListener) })
		group.Go(func() { failed <- web.Serve(httpListener) })
		if err := ready(Addresses{GRPC: address(grpcListener), HTTP: address(httpListener)}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			err = nil
		case err = <-failed:
		}
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		defer cancel()
		web.Close()
		_ = r.grpc.Stop(end) // it is over
		group.Wait()
		return err
	})
}

func address(l net.Listener) string { return l.Addr().String() }

// relay passes on between its one agent and its one client.
type relay struct {
	agent chan *relayAgent
	grpc  *grpcserver.Server
}

type relayAgent struct {
	stream wire.CovenControl_AgentStreamServer
	done   chan struct{}
}

// serveAgent welcomes the agent and leaves its stream to the client's goroutines.
func (r *relay) serveAgent(stream wire.CovenControl_AgentStreamServer) error {
	m, err := stream.Recv()
	if err != nil {
		return err
	}
	welcome := &wire.Welcome{ServerId: "relay", AgentId: m.GetRegister().GetAgentId()}
	if err := stream.Send(&wire.ServerMessage{Payload: &wire.ServerMessage_Welcome{Welcome: welcome}}); err != nil {
		return err
	}
	a := &relayAgent{stream, make(chan struct{})}
	r.agent <- a
	select {
	case <-a.done:
	case <-stream.Context().Done():
	}
	return nil
}

// serveClient carries questions to the agent and answers back, frame by frame.
func (r *relay) serveClient(w http.ResponseWriter, q *http.Request) {
	conn, err := ws.Accept(w, q, ws.AcceptOptions{})
	if err != nil {
		return
	}
	ctx := q.Context()
	a := <-r.agent
	defer close(a.done)
	defer conn.Close(link.Reason{Cause: link.Normal})
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() {
		for {
			b, err := conn.Receive(ctx)
			if err != nil {
				return
			}
			var f relayFrame
			if json.Unmarshal(b, &f) != nil {
				return
			}
			ask := &wire.SendMessage{RequestId: f.ID, Content: f.Message}
			if a.stream.Send(&wire.ServerMessage{Payload: &wire.ServerMessage_SendMessage{SendMessage: ask}}) != nil {
				return
			}
		}
	})
	for {
		m, err := a.stream.Recv()
		if err != nil {
			return
		}
		e := m.GetResponse()
		f := relayFrame{ID: e.GetRequestId(), Delta: e.GetText(), Done: e.GetDone() != nil}
		if f.Delta == "" && !f.Done {
			continue
		}
		b, err := json.Marshal(f)
		if err != nil || conn.Send(ctx, b) != nil {
			return
		}
	}
}
