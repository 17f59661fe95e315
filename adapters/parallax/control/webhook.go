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
)

// The events of a webhook, as the documentation of Parallax names them. Its code has
// the words behind the dot alone, which are taken too.
const (
	hookPrefix  = "execution."
	hookStarted = "started"
)

// webhookBody is the webhook of an execution.
type webhookBody struct {
	URL    string   `json:"url"`
	Secret string   `json:"secret"`
	Events []string `json:"events"`
}

// webhook is where to tell what becomes of an execution.
type webhook struct {
	url    string
	target string // the host of url
	secret []byte
	events []string // without hookPrefix
}

func (b webhookBody) webhook(targets Targets) (*webhook, error) {
	host, err := targets.check(b.URL)
	if err != nil {
		return nil, err
	}
	w := &webhook{url: b.URL, target: host, secret: []byte(b.Secret)}
	for _, e := range b.Events {
		e = strings.TrimPrefix(e, hookPrefix)
		switch e {
		case hookStarted, statusCompleted, statusFailed, statusCancelled:
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

// mostHooks is of how many executions the webhook is known, and mostBytes how much
// may wait for its delivery.
const (
	mostHooks = 1024
	mostBytes = 64 << 20
)

// hooks read the tasks that have a webhook, and deliver what is to be told.
type hooks struct {
	opts    Options
	hub     *hub.Hub
	session *hub.Session
	queue   queue
	cancel  context.CancelFunc
	read    chan struct{} // closed once nothing more is heard of the tasks
	running sync.WaitGroup

	mu    sync.Mutex
	known map[core.TaskID]*hook
	order []core.TaskID // oldest first
}

// hook is the webhook of one execution. hooks.mu guards what changes.
type hook struct {
	webhook
	task     core.TaskID
	ended    bool
	waiting  int // deliveries under way
	attempts []attempt
}

// watcher reads the tasks.
var watcher = hub.Part("webhooks", wire.Dialect)

func newHooks(h *hub.Hub, opts Options) *hooks {
	ctx, cancel := context.WithCancel(context.Background())
	q := &hooks{opts: opts, hub: h, cancel: cancel, read: make(chan struct{}), known: map[core.TaskID]*hook{}, queue: newQueue()}
	if opts.Targets == TargetsNone {
		close(q.read)
		return q
	}
	q.session = h.Connect(watcher)
	q.running.Go(func() {
		defer close(q.read)
		q.follow(ctx)
	})
	for range deliverers {
		q.running.Go(func() { q.deliverAll(ctx) })
	}
	return q
}

// close tells what is left to be told until ctx ends. The hub has ended all tasks, and
// how they ended is due too.
func (q *hooks) close(ctx context.Context) {
	select {
	case <-q.read:
	case <-ctx.Done():
	}
	if q.session != nil {
		q.session.Close(core.NewFault(core.CodeUnreachable, "the webhooks have ended"))
	}
	stop := context.AfterFunc(ctx, q.cancel)
	defer stop()
	q.queue.finish()
	q.running.Wait()
	q.cancel()
	if lost := q.queue.rest(); len(lost) > 0 {
		var of []core.TaskID
		for _, d := range lost {
			q.hub.Count("parallax.webhook.lost")
			if id := d.hook.task; len(of) < mostNamed && !slices.Contains(of, id) {
				of = append(of, id)
			}
		}
		q.opts.Log.Warn("deliveries of webhooks were lost with the hub: they wait in memory", "deliveries", len(lost), "executions", of)
	}
}

// mostNamed is how many executions are named whose webhook is not told to the end.
const mostNamed = 16

// room refuses another webhook while those that wait are too many.
func (q *hooks) room() error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.known) < mostHooks || slices.ContainsFunc(q.order, func(id core.TaskID) bool { return q.known[id].over() }) {
		return nil
	}
	return core.NewFault(core.CodeOverloaded, "webhook: %d executions with one are under way: try again later, or read the events", mostHooks)
}

// over reports whether nothing more will be told.
func (k *hook) over() bool { return k.ended && k.waiting == 0 }

// watch tells a webhook of what becomes of a task from its beginning.
func (q *hooks) watch(t *task.Task, w webhook) error {
	k := &hook{webhook: w, task: t.ID()}
	q.mu.Lock()
	if len(q.known) >= mostHooks {
		if i := slices.IndexFunc(q.order, func(id core.TaskID) bool { return q.known[id].over() }); i >= 0 {
			delete(q.known, q.order[i])
			q.order = slices.Delete(q.order, i, i+1)
		}
	}
	q.known[k.task] = k
	q.order = append(q.order, k.task)
	q.mu.Unlock()
	return q.session.Watch(t, core.Cursor{}, k)
}

// of returns the webhook of an execution, nil for none.
func (q *hooks) of(id core.TaskID) *webhook {
	q.mu.Lock()
	defer q.mu.Unlock()
	if k := q.known[id]; k != nil {
		return &k.webhook
	}
	return nil
}

// follow takes what happens to the tasks until the hub or the control plane stops.
func (q *hooks) follow(ctx context.Context) {
	for {
		b, err := q.session.Next(ctx)
		if err != nil {
			return
		}
		k, ok := b.Tag.(*hook)
		for _, e := range b.Events {
			if ok {
				q.tell(k, b.Task, e)
			}
		}
	}
}

// tell has an event delivered, if the webhook wants it.
func (q *hooks) tell(k *hook, t *task.Task, e core.Event) {
	if _, opened := e.Body.(core.Opened); opened {
		r := t.Request()
		input, err := wire.EncodeInput(r)
		if err != nil {
			input = nil // what the hub keeps is JSON
		}
		q.add(k, hookStarted, e.At, startedData{aboutExecution{t.ID(), pattern{Name: patternOf(r)}}, input})
		return
	}
	if !e.Body.Kind().Ends() {
		return
	}
	v, err := executionOf(t)
	if err != nil {
		q.opts.Log.Error("a webhook could not be told", "task", k.task, "error", err)
		return
	}
	d := endedData{aboutExecution: aboutExecution{t.ID(), pattern{Name: v.PatternName}}, Duration: v.Metrics.Duration, Result: v.Result}
	if v.Error != "" {
		d.Error = &failure{v.Code, v.Error}
	}
	if v.AgentID != "" {
		d.Agents = []agentResult{{ID: v.AgentID, Status: v.Status, Result: v.Result}}
	}
	if c, ok := e.Body.(core.Cancelled); ok {
		d.Reason, d.Error = c.Reason, nil
	}
	q.add(k, v.Status, e.At, d)
	q.mu.Lock()
	k.ended = true
	q.mu.Unlock()
}

// What the data of an event says, as the documentation of Parallax has it.
type (
	aboutExecution struct {
		ExecutionID core.TaskID `json:"executionId"`
		Pattern     pattern     `json:"pattern"`
	}
	pattern struct {
		Name string `json:"name"`
	}
	startedData struct {
		aboutExecution
		Input json.RawMessage `json:"input,omitempty"`
	}
	endedData struct {
		aboutExecution
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

// add queues the first attempt to deliver an event.
func (q *hooks) add(k *hook, kind string, at time.Time, data any) {
	if !slices.Contains(k.events, kind) {
		return
	}
	event := "evt_" + core.NewID()
	body, err := json.Marshal(struct {
		ID        string    `json:"id"`
		Type      string    `json:"type"`
		Timestamp time.Time `json:"timestamp"`
		Data      any       `json:"data"`
	}{event, hookPrefix + kind, at.UTC(), data})
	if err != nil {
		q.opts.Log.Error("a webhook could not be told", "task", k.task, "error", err)
		return
	}
	d := &delivery{hook: k, id: "dlv_" + core.NewID(), kind: hookPrefix + kind, body: body, due: time.Now(), first: time.Now()}
	q.mu.Lock()
	k.waiting++
	q.mu.Unlock()
	q.enqueue(d)
}
