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

// executionBody is the body of POST /api/executions.
type executionBody struct {
	// AgentID, Capability and Capabilities say whom it is for. PatternName does where
	// they do not: the hub has no patterns, and a pattern is the capability of that name.
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
	Webhook *webhookBody `json:"webhook"`
}

// noAgents is the code of Parallax for a capability that nobody has.
const noAgents = "NO_AGENTS"

// longest is how long an execution may take.
const longest = 7 * 24 * time.Hour

func (b executionBody) request() (core.Request, error) {
	r := core.Request{Intent: core.IntentAsk}
	all := words(append([]string{b.Capability}, b.Capabilities...))
	if len(all) == 0 && b.AgentID == "" {
		all = words([]string{b.PatternName})
	}
	var err error
	switch {
	case b.AgentID != "" && len(all) > 0:
		err = core.NewFault(core.CodeInvalid, "agentId and capability: send one of them")
	case b.AgentID != "":
		r.To, err = core.ParseAddress(b.AgentID)
	case len(all) > 0:
		r.To, err = core.ParseAddress("capability:" + strings.Join(all, ","))
	default:
		err = core.NewFault(core.CodeInvalid, "capability: missing; name what is to be done, or send agentId")
	}
	if err != nil {
		return r, err
	}
	if c := string(b.Options.Credentials); c != "" && c != "null" {
		return r, core.NewFault(core.CodeUnsupported, "options.credentials: the hub passes none on: give them to the agent")
	}
	if ms := b.Options.Timeout; ms != 0 {
		if ms < 0 || ms > longest.Milliseconds() {
			return r, core.NewFault(core.CodeInvalid, "options.timeout: want 1 to %d milliseconds, got %d", longest.Milliseconds(), ms)
		}
		r.Deadline = time.Now().Add(time.Duration(ms) * time.Millisecond)
	}
	if b.PatternName != "" {
		r.Foreign = wire.NamePattern(b.PatternName, b.Version)
	}
	return r, wire.ReadInput(b.Input, &r)
}

// words are texts, each of which may hold several with commas between.
func words(texts []string) []string {
	var all []string
	for _, text := range texts {
		for w := range strings.SplitSeq(text, ",") {
			if w = strings.TrimSpace(w); w != "" {
				all = append(all, w)
			}
		}
	}
	return all
}

// begun answers what began an execution.
type begun struct {
	ID                core.TaskID `json:"id"`
	Status            string      `json:"status"`
	Message           string      `json:"message"`
	StreamURL         string      `json:"streamUrl,omitempty"`
	WebhookConfigured bool        `json:"webhookConfigured"`
	RetryOf           core.TaskID `json:"retryOf,omitempty"`
}

func (c *Control) postExecution(k call) error {
	var b executionBody
	if err := c.read(k, &b); err != nil {
		return err
	}
	r, err := b.request()
	if err != nil {
		return err
	}
	var w *webhook
	if b.Webhook != nil {
		if w, err = b.Webhook.webhook(c.opts.Targets); err != nil {
			return err
		}
	}
	if in := string(b.Input); in == "" || in == "null" {
		return core.NewFault(core.CodeInvalid, "input: missing; send what is asked: a text, or an object with content")
	}
	return c.begin(k, r, w, begun{Message: "Execution started"}, b.Stream || b.Options.Stream)
}

// begin opens the task of an execution. It runs on when the request is over.
func (c *Control) begin(k call, r core.Request, w *webhook, out begun, streamed bool) error {
	if w != nil {
		if err := c.hooks.room(); err != nil {
			return err
		}
	}
	s := c.session(k)
	defer leave(s)
	t, err := s.Open(r, hub.OpenOptions{Keep: true, Unwatched: true})
	if f := core.AsFault(err); err != nil && f.Code == core.CodeUnknownAgent && len(r.To.Capabilities()) > 0 {
		nobody := core.NewFault(core.CodeUnreachable, "%s", f.Message)
		nobody.Peer = noAgents
		return nobody
	}
	if err != nil {
		return err
	}
	if w != nil {
		if err := c.hooks.watch(t, *w); err != nil {
			return err
		}
	}
	out.ID, out.Status, out.WebhookConfigured = t.ID(), "accepted", w != nil
	if streamed {
		out.StreamURL = "/api/executions/" + string(t.ID()) + "/events/stream"
	}
	c.answer(k.w, http.StatusAccepted, out)
	return nil
}

// task finds the task of the execution in the path, if the sender may read it.
func (c *Control) task(k call) (*task.Task, error) {
	return c.hub.Task(k.r.Context(), k.from, core.TaskID(k.id()))
}

func (c *Control) getExecution(k call) error {
	t, err := c.task(k)
	if err != nil {
		return err
	}
	e, err := executionOf(t)
	if err != nil {
		return err
	}
	e.Webhook = c.hooks.view(t.ID())
	c.answer(k.w, http.StatusOK, e)
	return nil
}

func (c *Control) postCancel(k call) error {
	t, err := c.task(k)
	if err != nil {
		return err
	}
	s := c.session(k)
	defer leave(s)
	if t.State() == task.Ended {
		return core.NewFault(core.CodeConflict, "execution %s has ended", t.ID())
	}
	if err := s.Cancel(t.ID(), "cancelled by "+k.from.ID); err != nil {
		return err
	}
	c.answer(k.w, http.StatusOK, struct {
		Message string      `json:"message"`
		ID      core.TaskID `json:"id"`
	}{"Execution cancelled", t.ID()})
	return nil
}

// postRetry asks again what an execution asked that has ended, in the name of who
// retries it, with the time that it had and its webhook.
func (c *Control) postRetry(k call) error {
	t, err := c.task(k)
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
	events := t.Events()
	if had := r.Deadline.Sub(events[0].At); !r.Deadline.IsZero() && had > 0 {
		r.Deadline = time.Now().Add(had)
	} else {
		r.Deadline = time.Time{}
	}
	r.History, r.Cause = nil, ""
	if string(r.Thread) == string(t.ID()) {
		r.Thread = "" // the failed attempt is no part of what is asked
	}
	return c.begin(k, r, c.hooks.of(t.ID()), begun{Message: "Execution retried", RetryOf: t.ID()}, true)
}
