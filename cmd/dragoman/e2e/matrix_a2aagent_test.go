package e2e

import (
	"context"
	"net/http"
	"sync"
	"testing"

	a2a "github.com/dragoman-hub/dragoman/adapters/a2a/client"
	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Every dialect that can ask, with an agent of another hub, over A2A: its stream, a cancel, an
// approval and a file. Usage is not among them: A2A tells the sum.
func TestEveryDialectAsksARemoteA2AAgent(t *testing.T) {
	for _, asks := range clientDialects() {
		t.Run(asks.name, func(t *testing.T) {
			t.Parallel()
			h := newTestHub(t, func(c *config.Config) { c.Pi.Retries, c.Pi.Breakers.AgentFailures, c.Pi.Rates = 0, 0, config.PiRates{} })
			h.startRemote(t, "far-agent")
			d := &pair{testHub: h, asks: asks, answers: a2awire.Dialect, agent: "far-agent"}
			d.requester = asks.connect(t, h, "asker")
			t.Cleanup(d.leave)
			t.Run("short text", func(t *testing.T) { shortText(t, d) })
			t.Run("burst", func(t *testing.T) { burst(t, d) })
			t.Run("cancel", func(t *testing.T) { cancelMidway(t, d) })
			t.Run("approval", func(t *testing.T) { approval(t, d) })
			t.Run("file", func(t *testing.T) { fileSent(t, d) })
		})
	}
}

// startRemote joins an agent that works at another hub, and is reached by A2A.
func (h *testHub) startRemote(t *testing.T, id core.AgentID) {
	t.Helper()
	far := newTestHub(t, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	card := core.Card{ID: "kit", Name: "Kit", MaxConcurrent: 4, Features: core.FeatureStreaming | core.FeatureCancellation}
	running.Go(func() {
		_ = h.join(ctx, native.Dialect, client.Hub{URL: far.url(), GRPC: far.service.Addresses().GRPC}, card)
	})
	far.await(t, "joined kit")
	transport := &http.Transport{}
	a := a2a.New(a2a.Options{URL: far.url() + "/a2a/kit", HTTP: &http.Client{Transport: transport}, Count: h.service.Hub().Count})
	s := h.service.Hub().Connect(hub.Identity{Principal: core.Principal{ID: string(id), Authenticated: true, Proof: "settings"}, Dialect: a2awire.Dialect})
	ready := make(chan agent.Profile, 1)
	running.Go(func() { _ = a.Run(ctx, func(p agent.Profile) { ready <- p }) })
	profile := <-ready
	if err := s.Join(core.Card{ID: id, Name: string(id), Dialect: a2awire.Dialect, Features: profile.Features, MaxConcurrent: 4}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	running.Go(func() { _ = host.Serve(ctx, s, a, nil) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		s.Close(nil)
		transport.CloseIdleConnections()
	})
}
