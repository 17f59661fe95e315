package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	covenclient "github.com/dragoman-hub/dragoman/adapters/coven/client"
	"github.com/dragoman-hub/dragoman/adapters/native"
	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// Paths of the dialects at the HTTP address of a hub.
const (
	acpPath      = "/ws/acp"
	nativePath   = "/ws/native"
	parallaxPath = "/ws/agent"
)

// maxFrameBytes is the largest frame of an agent or a requester: an answer to ACP is one frame.
const maxFrameBytes = 256 << 20

// agentID returns the id of the agent of a dialect.
func agentID(dialect string) string { return "bench-" + dialect }

// dialects returns the dialects of agents in alphabetical order.
func dialects() []string { return []string{acp.Dialect, coven.Name, native.Dialect, parallax.Dialect} }

// joinFunc joins a server as an agent that answers until the connection ends. joined is called when the server has
// accepted it.
type joinFunc func(ctx context.Context, to addresses, card core.Card, joined func()) error

// joins are the ways to join, by dialect.
var joins = map[string]joinFunc{
	coven.Name: func(ctx context.Context, to addresses, card core.Card, joined func()) error {
		return joinCovenSharing(1)(ctx, to, card, joined)
	},
	parallax.Dialect: func(ctx context.Context, to addresses, card core.Card, joined func()) error {
		conn, err := dialAs(ctx, to, parallaxPath, card)
		if err != nil {
			return err
		}
		return parallaxclient.Work(ctx, conn, card, answer, parallaxclient.WorkOptions{Registered: func(*parallaxclient.Agent) { joined() }, Link: pings})
	},
	acp.Dialect: func(ctx context.Context, to addresses, card core.Card, joined func()) error {
		conn, err := dialAs(ctx, to, acpPath, card)
		if err != nil {
			return err
		}
		return acpclient.Work(ctx, conn, card, answer, acpclient.WorkOptions{Joined: joined, Link: pings})
	},
	native.Dialect: func(ctx context.Context, to addresses, card core.Card, joined func()) error {
		conn, err := dialAs(ctx, to, nativePath, card)
		if err != nil {
			return err
		}
		return nativeclient.Work(ctx, conn, card, answer, nativeclient.WorkOptions{Joined: func(*nativeclient.Client) { joined() }, Link: pings})
	},
}

// pings are those of an agent that dragoman runs.
var pings = link.Options{PingEvery: 30 * time.Second, PingTimeout: 10 * time.Second}

func dialAs(ctx context.Context, to addresses, path string, card core.Card) (*ws.Conn, error) {
	return dial(ctx, to.HTTP, path, http.Header{"X-Agent-Id": {string(card.ID)}})
}

func dial(ctx context.Context, at, path string, header http.Header) (*ws.Conn, error) {
	return ws.Dial(ctx, "ws://"+at+path, ws.DialOptions{Limits: ws.Limits{ReadLimit: maxFrameBytes}, Header: header})
}

// joinCovenSharing joins Coven agents with share of them on one connection, so that a large crowd needs few files.
// Agents must join one after the other.
func joinCovenSharing(share int) joinFunc {
	var calls wire.CovenControlClient
	joined := 0
	return func(ctx context.Context, to addresses, card core.Card, in func()) error {
		if joined%share == 0 {
			cc, err := grpcserver.Dial(ctx, to.GRPC, grpcserver.DialOptions{})
			if err != nil {
				return err
			}
			calls = wire.NewCovenControlClient(cc) // open until the process ends
		}
		joined++
		conn, err := grpcserver.Open(ctx, calls.AgentStream)
		if err != nil {
			return err
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		return covenclient.Work(ctx, conn, card, answer, covenclient.WorkOptions{Joined: func(*wire.Welcome) { in() }})
	}
}

// answer is the core.Handler of every agent: it answers a number with as many chunks, and a request for a summary with
// a sentence. Earlier turns may follow the number.
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

// peers are the other processes of a bench, by their first argument. Each runs until ctx ends, and writes its ready
// file once it is ready.
var peers = map[string]func(ctx context.Context, args []string) error{
	"agent": runAgent,
	"crowd": runCrowd,
	"relay": runRelay,
}

// peerFlags are the flags of all of them.
func peerFlags(name string) (f *flag.FlagSet, dialect, ready *string, to *addresses) {
	f, to = flag.NewFlagSet(name, flag.ContinueOnError), &addresses{}
	f.StringVar(&to.GRPC, "grpc-addr", "", "")
	f.StringVar(&to.HTTP, "http-addr", "", "")
	return f, f.String("dialect", "", ""), f.String("ready-file", "", ""), to
}

// runAgent joins a server as the agent of a dialect.
func runAgent(ctx context.Context, args []string) error {
	f, dialect, ready, to := peerFlags("agent")
	if err := f.Parse(args); err != nil {
		return err
	}
	card := core.Card{
		ID: core.AgentID(agentID(*dialect)), MaxConcurrent: parallel, Features: core.FeatureStreaming | core.FeatureCancellation,
	}
	return joinAll(ctx, joins[*dialect], *to, []core.Card{card}, *ready)
}

// crowdCapability is the capability of the agents of a crowd.
const crowdCapability = "crowded"

// runCrowd has agents join from one process.
func runCrowd(ctx context.Context, args []string) error {
	f, dialect, ready, to := peerFlags("crowd")
	prefix := f.String("prefix", "", "")
	count := f.Int("count", 0, "")
	share := f.Int("share", 0, "the number of Coven agents on one connection")
	if err := f.Parse(args); err != nil {
		return err
	}
	join := joins[*dialect]
	if *share > 0 {
		join = joinCovenSharing(*share)
	}
	var cards []core.Card
	for i := range *count {
		cards = append(cards, core.Card{ID: core.AgentID(fmt.Sprintf("%s-%d", *prefix, i)), Capabilities: []string{crowdCapability}, Features: core.FeatureCancellation})
	}
	return joinAll(ctx, join, *to, cards, *ready)
}

// joinAll has agents join one after the other, and answer until ctx ends or one of them has failed.
func joinAll(ctx context.Context, join joinFunc, to addresses, cards []core.Card, ready string) error {
	var group sync.WaitGroup
	defer group.Wait()
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	failed := make(chan error, len(cards))
	for _, card := range cards {
		in := make(chan struct{})
		group.Go(func() { failed <- join(ctx, to, card, func() { close(in) }) })
		select {
		case <-in:
		case err := <-failed:
			return err
		}
	}
	if err := writeReady(ready, addresses{}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return err
	}
}

// addresses are what a process listens on, as --ready-file of dragoman has them.
type addresses struct {
	GRPC string `json:"grpc,omitempty"`
	HTTP string `json:"http,omitempty"`
	Pi   string `json:"pi,omitempty"`
}

// writeReady writes a ready file, which appears whole.
func writeReady(path string, bound addresses) error {
	b, err := json.Marshal(bound)
	if err != nil {
		return err
	}
	if err := os.WriteFile(path+".tmp", b, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".tmp", path)
}

// awaitReady waits until a child has written its ready file, or has ended.
func awaitReady(ctx context.Context, path string, ended <-chan struct{}) (a addresses, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute) // a crowd takes a while
	defer cancel()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil {
			return a, json.Unmarshal(b, &a)
		}
		select {
		case <-tick.C:
		case <-ended:
			return a, fmt.Errorf("it has ended")
		case <-ctx.Done():
			return a, context.Cause(ctx)
		}
	}
}
