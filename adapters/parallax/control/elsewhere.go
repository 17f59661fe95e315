package control

import (
	"context"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The hub where an execution was started delivers to its webhook. Every hub of the cluster shows the
// webhook and its deliveries, and repeats the execution with it.

// kept is what the hub that delivers has of an execution.
type kept struct {
	View     *webhookView  `json:"view,omitempty"`
	Endpoint *endpointForm `json:"endpoint,omitempty"`
}

// endpointForm is an endpoint as hubs tell it each other.
type endpointForm struct {
	URL    string   `json:"url"`
	Target string   `json:"target"`
	Secret []byte   `json:"secret,omitempty"`
	Events []string `json:"events"`
}

const webhookMatter hub.Matter[core.TaskID, kept] = "parallax.webhook"

// answerWebhooks tells other hubs of the webhooks of executions that their senders started here.
func (c *Control) answerWebhooks() {
	webhookMatter.Answer(c.hub, func(ctx context.Context, by core.Principal, id core.TaskID) (kept, error) {
		hk := c.webhooks.get(id)
		if hk == nil {
			return kept{}, nil
		}
		if t, err := c.hub.Task(ctx, by, id); err != nil || t.From().ID != by.ID {
			return kept{}, err
		}
		return kept{c.webhooks.view(id), &endpointForm{hk.url, hk.target, hk.secret, hk.events}}, nil
	})
}

// elsewhere returns what other hubs have of an execution of the sender.
func (c *Control) elsewhere(q request, id core.TaskID) kept {
	answers, _ := webhookMatter.AskAll(q.r.Context(), c.hub, q.from, id) // with a hub its webhooks are gone
	for _, a := range answers {
		if a.Out.Endpoint != nil {
			return a.Out
		}
	}
	return kept{}
}

// webhookOf returns the webhook of an execution of the sender; nil for none.
func (c *Control) webhookOf(q request, id core.TaskID) *webhookView {
	if v := c.webhooks.view(id); v != nil {
		return v
	}
	return c.elsewhere(q, id).View
}

// endpointOf returns where the events of an execution of the sender are delivered; nil for nowhere.
func (c *Control) endpointOf(q request, id core.TaskID) *endpoint {
	if hk := c.webhooks.get(id); hk != nil {
		return hk
	}
	if f := c.elsewhere(q, id).Endpoint; f != nil {
		return &endpoint{url: f.URL, target: f.Target, secret: f.Secret, events: f.Events}
	}
	return nil
}
