package control

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// The events of a webhook have this prefix in the documentation of Parallax, and none in
// its code. Both are accepted.
const (
	eventPrefix  = "execution."
	eventStarted = "started"
)

// webhookRequest is the webhook in the body of POST /api/executions.
type webhookRequest struct {
	URL    string   `json:"url"`
	Secret string   `json:"secret"`
	Events []string `json:"events"`
}

// endpoint is where the events of an execution are delivered.
type endpoint struct {
	url    string
	target string // the host of url
	secret []byte
	events []string // without eventPrefix
}

func (b webhookRequest) endpoint(targets webhook.Targets) (*endpoint, error) {
	at := webhook.Place{Member: "webhook.url", Setting: "parallax.webhook_targets"}
	if targets == webhook.TargetsNone {
		at.Member = "webhook"
	}
	host, err := targets.Check(b.URL, at)
	if err != nil {
		return nil, err
	}
	w := &endpoint{url: b.URL, target: host, secret: []byte(b.Secret)}
	for _, e := range b.Events {
		e = strings.TrimPrefix(e, eventPrefix)
		switch e {
		case eventStarted, statusCompleted, statusFailed, statusCancelled:
			w.events = append(w.events, e)
		default:
			return nil, core.NewFault(core.CodeInvalid, "webhook.events: want execution.started, .completed, .failed or .cancelled, not %.64q", e)
		}
	}
	if len(w.events) == 0 {
		w.events = []string{statusCompleted, statusFailed, statusCancelled}
	}
	return w, nil
}

// maxWebhooks is the maximum number of executions with a webhook.
const maxWebhooks = 1024

// webhooks reads the tasks that have a webhook, and delivers their events.
type webhooks struct {
	opts    Options
	hub     *hub.Hub
	session *hub.Session
	sender  *webhook.Sender
	cancel  context.CancelFunc
	read    chan struct{} // closed once no task is read any more
	running sync.WaitGroup

	mu    sync.Mutex
	hooks map[core.TaskID]*hook
	order []core.TaskID // oldest first
}

// hook is the webhook of one execution. webhooks.mu guards what changes.
type hook struct {
	endpoint
	task     core.TaskID
	ended    bool
	waiting  int // deliveries
	attempts []attempt
}

// finished reports whether no delivery will follow.
func (k *hook) finished() bool { return k.ended && k.waiting == 0 }

// watcher is the identity of the session that reads the tasks.
var watcher = hub.ComponentIdentity("webhooks", wire.Dialect)

func newWebhooks(h *hub.Hub, opts Options) *webhooks {
	ctx, cancel := context.WithCancel(context.Background())
	w := &webhooks{opts: opts, hub: h, cancel: cancel, read: make(chan struct{}), hooks: map[core.TaskID]*hook{}}
	w.sender = webhook.New(webhook.Options{Targets: opts.Targets, Transport: opts.Transport})
	if w.sender.Targets() == webhook.TargetsNone {
		close(w.read)
		return w
	}
	w.session = h.Connect(watcher)
	w.running.Go(func() {
		defer close(w.read)
		w.readTasks(ctx)
	})
	return w
}

// close delivers what is due until ctx ends. The closed hub has ended all tasks, so their
// ends are due too.
func (w *webhooks) close(ctx context.Context) {
	select {
	case <-w.read:
	case <-ctx.Done():
	}
	if w.session != nil {
		w.session.Close(core.NewFault(core.CodeUnreachable, "the control plane has stopped"))
	}
	lost := w.sender.Close(ctx)
	w.cancel()
	w.running.Wait()
	if len(lost) > 0 {
		var of []core.TaskID
		for _, d := range lost {
			w.hub.Count("parallax.webhook.lost")
			if id := d.Of.(core.TaskID); len(of) < maxLogged && !slices.Contains(of, id) {
				of = append(of, id)
			}
		}
		w.opts.Log.Warn("webhook deliveries were lost: their queue is in memory", "deliveries", len(lost), "executions", of)
	}
}

// maxLogged is the maximum number of executions that the log names.
const maxLogged = 16

// checkRoom refuses another webhook while maxWebhooks have deliveries to come.
func (w *webhooks) checkRoom() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.hooks) < maxWebhooks || w.oldestFinished() >= 0 {
		return nil
	}
	return core.NewFault(core.CodeOverloaded, "webhook: %d executions with one are under way: try again later, or read the events", maxWebhooks)
}

// oldestFinished returns the index in order, -1 for none. Callers hold mu.
func (w *webhooks) oldestFinished() int {
	return slices.IndexFunc(w.order, func(id core.TaskID) bool { return w.hooks[id].finished() })
}

// add delivers the events of a task, from its first. It forgets a finished webhook if it
// needs room.
func (w *webhooks) add(t *task.Task, hk endpoint) error {
	k := &hook{endpoint: hk, task: t.ID()}
	w.mu.Lock()
	if len(w.hooks) >= maxWebhooks {
		if i := w.oldestFinished(); i >= 0 {
			delete(w.hooks, w.order[i])
			w.order = slices.Delete(w.order, i, i+1)
		}
	}
	w.hooks[k.task] = k
	w.order = append(w.order, k.task)
	w.mu.Unlock()
	return w.session.Watch(t, core.Cursor{}, k)
}

// get returns the webhook of an execution, nil for none.
func (w *webhooks) get(id core.TaskID) *endpoint {
	w.mu.Lock()
	defer w.mu.Unlock()
	if k := w.hooks[id]; k != nil {
		return &k.endpoint
	}
	return nil
}

// readTasks reads the tasks until the hub or the control plane stops.
func (w *webhooks) readTasks(ctx context.Context) {
	for {
		b, err := w.session.Next(ctx)
		if err != nil {
			return
		}
		if k, ok := b.Tag.(*hook); ok {
			for _, e := range b.Events {
				w.onEvent(k, b.Task, e)
			}
		}
	}
}

// onEvent queues the delivery of an event, if the webhook wants it.
func (w *webhooks) onEvent(k *hook, t *task.Task, e core.Event) {
	if _, opened := e.Body.(core.Opened); opened {
		r := t.Request()
		input, err := wire.EncodeInput(r)
		if err != nil {
			input = nil // the hub keeps only valid JSON
		}
		w.queueEvent(k, eventStarted, e.At, startedData{executionRef{t.ID(), pattern{Name: patternOf(r)}}, input})
		return
	}
	if !e.Body.Kind().Ends() {
		return
	}
	v, err := executionOf(t)
	if err != nil {
		w.opts.Log.Error("a webhook event could not be encoded", "task", k.task, "error", err)
		return
	}
	d := endedData{executionRef: executionRef{t.ID(), pattern{Name: v.PatternName}}, Duration: v.Metrics.Duration, Result: v.Result}
	if v.Error != "" {
		d.Error = &failure{v.Code, v.Error}
	}
	if v.AgentID != "" {
		d.Agents = []agentResult{{ID: v.AgentID, Status: v.Status, Result: v.Result}}
	}
	if c, ok := e.Body.(core.Cancelled); ok {
		d.Reason, d.Error = c.Reason, nil
	}
	w.queueEvent(k, v.Status, e.At, d)
	w.mu.Lock()
	k.ended = true
	w.mu.Unlock()
}

// The data of an event, as the documentation of Parallax has it.
type (
	executionRef struct {
		ExecutionID core.TaskID `json:"executionId"`
		Pattern     pattern     `json:"pattern"`
	}
	pattern struct {
		Name string `json:"name"`
	}
	startedData struct {
		executionRef
		Input json.RawMessage `json:"input,omitempty"`
	}
	endedData struct {
		executionRef
		Duration int64           `json:"duration"` // in milliseconds
		Result   json.RawMessage `json:"result,omitempty"`
		Agents   []agentResult   `json:"agents,omitempty"`
		Error    *failure        `json:"error,omitempty"`
		Reason   string          `json:"reason,omitempty"`
	}
	failure struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	}
	agentResult struct {
		ID     core.AgentID    `json:"id"`
		Status string          `json:"status"`
		Result json.RawMessage `json:"result,omitempty"`
	}
)

// queueEvent queues the first attempt to deliver an event.
func (w *webhooks) queueEvent(k *hook, kind string, at time.Time, data any) {
	if !slices.Contains(k.events, kind) {
		return
	}
	body, err := json.Marshal(struct {
		ID        string    `json:"id"`
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{"evt_" + core.NewID(), eventPrefix + kind, at.UTC(), data})
	if err != nil {
		w.opts.Log.Error("a webhook event could not be encoded", "task", k.task, "error", err)
		return
	}
	now := time.Now()
	w.mu.Lock()
	k.waiting++
	w.mu.Unlock()
	w.send(&delivery{hook: k, id: "dlv_" + core.NewID(), event: eventPrefix + kind, body: body, first: now})
}
