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
	"github.com/dragoman-hub/dragoman/core"
)

// Every dialect that can ask, with an agent of another hub, over A2A.
func TestEveryDialectAsksARemoteA2AAgent(t *testing.T) {
	t.Parallel()
	askEach(t, a2aAgents())
}

// a2aAgents are agents of another hub that are reached by A2A.
func a2aAgents() *agentDialect {
	d := &agentDialect{name: a2awire.Dialect, start: startRemote, approvals: true, unsaid: map[string]string{}}
	for _, c := range cases {
		switch c.name {
		case "short text", "burst", "cancel", "approval", "file":
		default:
			d.unsaid[c.name] = "it is not tried yet"
		}
	}
	return d
}

// startRemote joins an agent that works at another hub, and is reached by A2A.
func startRemote(t *testing.T, h *testHub, id core.AgentID, concurrent int) (cut func()) {
	t.Helper()
	far := newTestHub(t, nil)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	card := core.Card{ID: "kit", Name: "Kit", MaxConcurrent: concurrent, Features: core.FeatureStreaming | core.FeatureCancellation}
	running.Go(func() { // its signals are those of the hub that is asked
		_ = h.join(ctx, native.Dialect, client.Hub{URL: far.url(), GRPC: far.service.Addresses().GRPC}, card)
	})
	far.await(t, "joined kit")
	transport := &http.Transport{}
	t.Cleanup(func() {
		stop()
		running.Wait()
		transport.CloseIdleConnections()
	})
	a := a2a.New(a2a.Options{URL: far.url() + "/a2a/kit", HTTP: &http.Client{Transport: transport}, Count: h.service.Hub().Count})
	h.hostAgent(t, a, core.Card{ID: id, Dialect: a2awire.Dialect, MaxConcurrent: concurrent})
	return func() {}
}
