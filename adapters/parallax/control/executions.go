package control

import (
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// executionRequest is the body of POST /api/executions.
type executionRequest struct {
	// AgentID, Capability and Capabilities are the address. Without them PatternName is
	// the capability: the hub has no patterns.
	AgentID      string          `json:"agentId"`
	Capability   string          `json:"capability"`
	Capabilities []string        `json:"capabilities"`
	PatternName  string          `json:"patternName"`
	Version      string          `json:"patternVersion"`
	Input        json.RawMessage `json:"input"`
	Stream       bool            `json:"stream"`
	Options      struct {
		// Timeout is in milliseconds.
		Timeout     int64           `json:"timeout"`
		Stream      bool            `json:"stream"`
		Credentials json.RawMessage `json:"credentials"`
	} `json:"options"`
	Webhook *webhookRequest `json:"webhook"`
}

// noAgents is the code of Parallax if no agent has the capability.
const noAgents = "NO_AGENTS"

// maxTimeout is the maximum timeout of an execution.
const maxTimeout = 7 * 24 * time.Hour

func (b executionRequest) request() (core.Request, error) {
	r := core.Request{Intent: core.IntentAsk}
	capabilities := splitList(append([]string{b.Capability}, b.Capabilities...))
	if len(capabilities) == 0 && b.AgentID == "" {
		capabilities = splitList([]string{b.PatternName})
	}
	var err error
	switch {
	case b.AgentID != "" && len(capabilities) > 0:
		err = core.NewFault(core.CodeInvalid, "agentId and capability: send one of them")
	case b.AgentID != "":
		r.To, err = core.ParseAddress(b.AgentID)
	case len(capabilities) > 0:
		r.To, err = core.ParseAddress("capability:" + strings.Join(capabilities, ","))
	default:
		err = core.NewFault(core.CodeInvalid, "capability: missing; send one, or agentId")
	}
	if err != nil {
		return r, err
	}
	if c := string(b.Options.Credentials); c != "" && c != "null" {
		return r, core.NewFault(core.CodeUnsupported, "options.credentials: not supported: give them to the agent")
	}
	if ms := b.Options.Timeout; ms != 0 {
		if ms < 0 || ms > maxTimeout.Milliseconds() {
			return r, core.NewFault(core.CodeInvalid, "options.timeout: want 1 to %d milliseconds, got %d", maxTimeout.Milliseconds(), ms)
		}
		r.Deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	if b.PatternName != "" {
		r.Foreign = wire.NamePattern(b.PatternName, b.Version)
	}
	return r, wire.ReadInput(b.Input, &r)
}

// splitList splits texts at commas, and drops empty items.
func splitList(texts []string) []string {
	var all []string
	for _, text := range texts {
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				all = append(all, item)
			}
		}
	}
	return all
}

// accepted is the body of a response that started an execution.
type accepted struct {
	ID                core.TaskID `json:"id"`
	Status            string      `json:"status"`
	Message           string      `json:"message"`
	StreamURL         string      `json:"streamUrl,omitempty"`
	WebhookConfigured bool        `json:"webhookConfigured"`
	RetryOf           core.TaskID `json:"retryOf,omitempty"`
}

func (c *Control) postExecution(q request) error {
	var b executionRequest
	if err := c.readBody(q, &b); err != nil {
		return err
	}
	r, err := b.request()
	if err != nil {
		return err
	}
	var w *endpoint
	if b.Webhook != nil {
		if w, err = b.Webhook.endpoint(c.webhooks.sender.Targets()); err != nil {
			return err
		}
	}
	if in := string(b.Input); in == "" || in == "null" {
		return core.NewFault(core.CodeInvalid, "input: missing; send what is asked: a text, or an object with content")
	}
	return c.start(q, r, w, accepted{Message: "Execution started"}, b.Stream || b.Options.Stream)
}

// start opens the task of an execution. It continues after the HTTP request.
func (c *Control) start(q request, r core.Request, w *endpoint, out accepted, stream bool) error {
	if w != nil {
		if err := c.webhooks.checkRoom(); err != nil {
			return err
		}
	}
	s := c.connect(q)
	defer disconnect(s)
	t, err := s.Open(r, hub.OpenOptions{Keep: true, Unwatched: true, Trace: core.TraceOf(q.r.Header.Values)})
	if f := core.AsFault(err); err != nil && f.Code == core.CodeUnknownAgent && len(r.To.Capabilities()) > 0 {
		none := core.NewFault(core.CodeUnreachable, "%s", f.Message)
		none.PeerCode = noAgents
		return none
	}
	if err != nil {
		return err
	}
	if w != nil {
		if err := c.webhooks.add(t, *w); err != nil {
			return err
		}
	}
	out.ID, out.Status, out.WebhookConfigured = t.ID(), "accepted", w != nil
	if stream {
		out.StreamURL = "/api/executions/" + string(t.ID()) + "/events/stream"
	}
	c.writeJSON(q.w, http.StatusAccepted, out)
	return nil
}

// task returns the task of the execution in the path, if the sender may read it.
func (c *Control) task(q request) (*task.Task, error) {
	return c.hub.Task(q.r.Context(), q.from, core.TaskID(q.id()))
}

func (c *Control) getExecution(q request) error {
	t, err := c.task(q)
	if err != nil {
		return err
	}
	e, err := executionOf(t)
	if err != nil {
		return err
	}
	if isOf(q, t) {
		e.Webhook = c.webhookOf(q, t.ID())
	}
	c.writeJSON(q.w, http.StatusOK, e)
	return nil
}

func (c *Control) postCancel(q request) error {
	t, err := c.task(q)
	if err != nil {
		return err
	}
	s := c.connect(q)
	defer disconnect(s)
	if t.State() == task.Ended {
		return core.NewFault(core.CodeConflict, "execution %s has ended", t.ID())
	}
	if err := s.Cancel(t.ID(), "cancelled by "+q.from.ID); err != nil {
		return err
	}
	c.writeJSON(q.w, http.StatusOK, struct {
		Message string      `json:"message"`
		ID      core.TaskID `json:"id"`
	}{"Execution cancelled", t.ID()})
	return nil
}

// isOf reports whether the sender started the execution: its webhook, which may have secrets, is
// for nobody else.
func isOf(q request, t *task.Task) bool { return t.From().ID == q.from.ID }

// postRetry repeats the request of an ended execution on behalf of the sender, with the
// same timeout and, if it is the sender's, the same webhook.
func (c *Control) postRetry(q request) error {
	t, err := c.task(q)
	if err != nil {
		return err
	}
	if t.State() != task.Ended {
		return core.NewFault(core.CodeConflict, "execution %s has not ended: cancel it first", t.ID())
	}
	r := t.Request()
	if r.To.IsZero() {
		return core.NewFault(core.CodeUnsupported, "what execution %s asked is no longer kept: start another", t.ID())
	}
	if timeout := r.Deadline.Sub(t.Events()[0].At); !r.Deadline.IsZero() && timeout > 0 {
		r.Deadline = time.Now().Add(timeout)
	} else {
		r.Deadline = time.Time{}
	}
	r.History, r.Cause = nil, ""
	if string(r.Thread) == string(t.ID()) {
		r.Thread = "" // the hub made it for the first attempt
	}
	var w *endpoint
	if isOf(q, t) {
		w = c.endpointOf(q, t.ID())
	}
	return c.start(q, r, w, accepted{Message: "Execution retried", RetryOf: t.ID()}, true)
}
