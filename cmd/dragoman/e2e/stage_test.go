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

// stage is a whole hub for a test, on real sockets, with what happens on it said
// on a board:
//
//	joined ID, left ID                 of an agent
//	KEY opened, KEY text, KEY ended    of a request, the event (see script_test.go for its key)
//	KEY begun, KEY returned            of the agent's handler, with its error
type stage struct {
	board
	service *service.Service
	config  config.Config
	log     *slog.Logger
	keys    atomic.Int64
}

// newStage starts a hub. When the test ends the hub is stopped, and every promise
// that it broke fails the test. So does all that was logged as an error.
func newStage(t *testing.T, change func(*config.Config)) *stage {
	t.Helper()
	s := &stage{log: slog.New(complaints{slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelWarn}), t})}
	config := config.Local()
	if change != nil {
		change(&config)
	}
	s.config = config
	var promises *coretest.Promises
	var err error
	s.service, err = service.Start(t.Context(), config, s.log, func(o *hub.Options) {
		o.Observer = &witness{stage: s, keys: map[core.TaskID]string{}}
		promises = coretest.Watch(o)
	})
	if err != nil {
		t.Fatal(err)
	}
	promises.Read(s.service.Hub())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), watchdog)
		defer cancel()
		if err := s.service.Stop(ctx, "the test is over"); err != nil {
			t.Errorf("stopping the hub: got %v, want no error", err)
		}
		for _, broken := range promises.Broken() {
			t.Error(broken)
		}
	})
	return s
}

// key names a request: no two of a stage are alike.
func (s *stage) key() string { return fmt.Sprintf("k%d", s.keys.Add(1)) }

// await waits for a fact and returns what was said of it.
func (s *stage) await(t *testing.T, fact string) any {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	v, err := s.wait(ctx, fact)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// end waits for the end of a request and returns its body.
func (s *stage) end(t *testing.T, key string) core.Body {
	t.Helper()
	return s.await(t, key+" ended").(core.Event).Body
}

// cast lets an agent join in a dialect, through a cable, and returns once the hub
// has it. It leaves when the test ends.
func (s *stage) cast(t *testing.T, dialect string, id core.AgentID, concurrent int) *cable {
	t.Helper()
	target := s.service.Addresses().HTTP
	if dialect == coven.Name || dialect == gatewayName {
		target = s.service.Addresses().GRPC
	}
	c := lay(t, target)
	card := core.Card{
		ID: id, Name: "the agent " + string(id), Capabilities: []string{"acting"}, MaxConcurrent: concurrent,
		Features: core.FeatureStreaming | core.FeatureCancellation,
	}
	ctx, leave := context.WithCancel(context.Background())
	var life sync.WaitGroup
	ended := make(chan error, 1)
	life.Go(func() {
		ended <- s.joinListening(ctx, dialect, client.Hub{URL: "http://" + c.addr(), GRPC: c.addr()}, card)
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
	if _, err := s.wait(joined, "joined "+string(id)); err != nil {
		t.Fatal(err)
	}
	return c
}

// witness is the hub's observer: it says on the stage's board what happens.
type witness struct {
	*stage
	keysMu sync.Mutex
	keys   map[core.TaskID]string
}

// Joined implements hub.Observer.
func (w *witness) Joined(c core.Card) {
	w.strike("left " + string(c.ID))
	w.post("joined "+string(c.ID), c)
}

// Left implements hub.Observer.
func (w *witness) Left(id core.AgentID) {
	w.strike("joined " + string(id))
	w.post("left "+string(id), nil)
}

// Appended implements hub.Observer.
func (w *witness) Appended(id core.TaskID, e core.Event) {
	w.keysMu.Lock()
	if b, ok := e.Body.(core.Opened); ok {
		w.keys[id] = readScene(b.Request.Content).key
	}
	key := w.keys[id]
	w.keysMu.Unlock()
	switch kind := e.Body.Kind(); {
	case kind == core.KindOpened, kind == core.KindText, kind == core.KindApprovalRequested, kind == core.KindInjectionAnswered:
		w.post(key+" "+kind.String(), e)
	case kind.Ends():
		w.post(key+" ended", e)
	}
}

// Recorded implements hub.Observer.
func (w *witness) Recorded(core.TaskID, uint64) {}

// complaints is a log in which an error fails the test: nothing that peers do is
// one of the hub.
type complaints struct {
	slog.Handler
	t *testing.T
}

// Handle implements slog.Handler.
func (c complaints) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelError {
		c.t.Errorf("got an error in the log, want none: %s", r.Message)
	}
	return c.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (c complaints) WithAttrs(all []slog.Attr) slog.Handler {
	return complaints{c.Handler.WithAttrs(all), c.t}
}

// WithGroup implements slog.Handler.
func (c complaints) WithGroup(name string) slog.Handler {
	return complaints{c.Handler.WithGroup(name), c.t}
}
