package e2e

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// watchdog is how long a test waits for what should happen at once, and ample is
// how long an answer may take that is not about time.
const (
	watchdog = 2 * time.Minute
	ample    = 10 * time.Minute
)

// testHub is a hub on real sockets. It signals what happens on it:
//
//	joined ID, left ID                 of an agent
//	KEY opened, KEY text, KEY ended    the event of a request (see testagent_test.go for its key)
//	KEY begun, KEY returned            of the agent's handler, with its error
type testHub struct {
	signals
	service *service.Service
	config  config.Config
	log     *slog.Logger
	keys    atomic.Int64
}

// newTestHub starts a hub. It is stopped when the test ends. A broken promise fails the test, and
// so does an error in the log.
func newTestHub(t *testing.T, change func(*config.Config)) *testHub {
	t.Helper()
	return newLoggingHub(t, slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}), change)
}

// newLoggingHub starts a hub with a log of its own.
func newLoggingHub(t *testing.T, log slog.Handler, change func(*config.Config)) *testHub {
	t.Helper()
	h := &testHub{log: slog.New(failOnError{log, t})}
	config := config.Local()
	if change != nil {
		change(&config)
	}
	h.config = config
	var promises *coretest.Promises
	var err error
	h.service, err = service.Start(t.Context(), config, h.log, func(o *hub.Options) {
		o.Observer = &observer{testHub: h, keys: map[core.TaskID]string{}}
		promises = coretest.Watch(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	promises.Read(h.service.Hub())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		if err := h.service.Stop(ctx, "the test is over"); err != nil {
			t.Errorf("stopping the hub: got %v, want no error", err)
		}
		for _, broken := range promises.Broken() {
			t.Error(broken)
		}
	})
	return h
}

// url returns the base address of the REST interface.
func (h *testHub) url() string { return "http://" + h.service.Addresses().HTTP }

// key returns a new key for a request.
func (h *testHub) key() string { return fmt.Sprintf("k%d", h.keys.Add(1)) }

// await waits for a signal and returns its value.
func (h *testHub) await(t *testing.T, fact string) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	v, err := h.wait(ctx, fact)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// end waits for the end of a request and returns its body.
func (h *testHub) end(t *testing.T, key string) core.Body {
	t.Helper()
	return h.await(t, key+" ended").(core.Event).Body
}

// startAgent connects an agent of a dialect through a proxy and returns once it has joined. It
// leaves when the test ends.
func (h *testHub) startAgent(t *testing.T, dialect string, id core.AgentID, concurrent int) *proxy {
	t.Helper()
	target := h.service.Addresses().HTTP
	if dialect == coven.Name || dialect == gatewayName {
		target = h.service.Addresses().GRPC
	}
	c := newProxy(t, target)
	card := core.Card{
		ID: id, Name: "the agent " + string(id), Capabilities: []string{"acting"}, MaxConcurrent: concurrent,
		Features: core.FeatureStreaming | core.FeatureCancellation,
	}
	ctx, leave := context.WithCancel(context.Background())
	var life sync.WaitGroup
	ended := make(chan error, 1)
	life.Go(func() {
		ended <- h.join(ctx, dialect, client.Hub{URL: "http://" + c.addr(), GRPC: c.addr()}, card)
	})
	t.Cleanup(func() {
		leave()
		life.Wait()
	})
	joined, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	life.Go(func() {
		select {
		case err := <-ended:
			ended <- err
			cancel(fmt.Errorf("the agent left: %w", err))
		case <-joined.Done():
		}
	})
	if _, err := h.wait(joined, "joined "+string(id)); err != nil {
		t.Fatal(err)
	}
	return c
}

// observer signals what happens on the hub.
type observer struct {
	*testHub
	mu   sync.Mutex
	keys map[core.TaskID]string
}

// Joined implements hub.Observer.
func (w *observer) Joined(c core.Card) {
	w.reset("left " + string(c.ID))
	w.signal("joined "+string(c.ID), c)
}

// Left implements hub.Observer.
func (w *observer) Left(id core.AgentID, _ bool) {
	w.reset("joined " + string(id))
	w.signal("left "+string(id), nil)
}

// Appended implements hub.Observer.
func (w *observer) Appended(id core.TaskID, e core.Event) {
	w.mu.Lock()
	if b, ok := e.Body.(core.Opened); ok {
		w.keys[id] = parseInstruction(b.Request.Content).key
	}
	key := w.keys[id]
	w.mu.Unlock()
	switch kind := e.Body.Kind(); {
	case kind == core.KindOpened, kind == core.KindText, kind == core.KindApprovalRequested, kind == core.KindApprovalDecided, kind == core.KindQuestionAsked, kind == core.KindInjectionAnswered:
		w.signal(key+" "+kind.String(), e)
	case kind.Ends():
		w.signal(key+" ended", e)
	}
}

// Recorded implements hub.Observer.
func (w *observer) Recorded(core.TaskID, uint64) {}

// failOnError is a log handler that fails the test on an error. Nothing that a peer does is an
// error of the hub.
type failOnError struct {
	slog.Handler
	t *testing.T
}

// Handle implements slog.Handler.
func (c failOnError) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		c.t.Errorf("got an error in the log, want none: %s", r.Message)
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c failOnError) WithAttrs(all []slog.Attr) slog.Handler {
	return failOnError{c.Handler.WithAttrs(all), c.t}
}

// WithGroup implements slog.Handler.
func (c failOnError) WithGroup(name string) slog.Handler {
	return failOnError{c.Handler.WithGroup(name), c.t}
}
