package config

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// Notify says who is told elsewhere.
type Notify struct {
	Webhooks Webhooks
}

func (n *Notify) settings(t *table) {
	add(t, "webhooks", &n.Webhooks, nil, "Where messages are posted when something waits for people, a task of theirs has ended, or an agent is down.")
}

// The events that a webhook may be told of.
const (
	NotifyWaiting   = "waiting"
	NotifyEnded     = "ended"
	NotifyFailed    = "failed"
	NotifyAgentDown = "agent_down"
)

var notifyEvents = []string{NotifyWaiting, NotifyEnded, NotifyFailed, NotifyAgentDown}

// notifyUsual are the events of a webhook that names none: those after which somebody may have something to do.
var notifyUsual = []string{NotifyWaiting, NotifyFailed, NotifyAgentDown}

// Webhook is an address that messages are posted to.
type Webhook struct {
	// URL may have a secret in its path or query.
	URL string `json:"url"`
	// On has the events that are told, Agents patterns of the agents that they are about; none is all.
	On     []string `json:"on,omitempty"`
	Agents []string `json:"agents,omitempty"`
	// Secret signs the messages: see [Webhook.Key].
	Secret  string `json:"secret,omitempty"`
	Content bool   `json:"content,omitempty"`
}

// Webhooks is the list of webhooks of the settings.
type Webhooks []Webhook

func (w *Webhooks) read(path string, raw any, report reporter) {
	*w = readEntries[Webhook](path, raw, report)
}

// String describes the webhooks: their hosts.
func (w Webhooks) String() string { return strings.Join(each(w, Webhook.host), ", ") }

func (w Webhook) host() string {
	if u, err := url.Parse(w.URL); err == nil {
		return u.Host
	}
	return ""
}

// MarshalJSON shows a webhook without what only its receiver is to know.
func (w Webhook) MarshalJSON() ([]byte, error) {
	type shownWebhook Webhook
	const hidden = "[not shown]"
	if u, err := url.Parse(w.URL); err == nil {
		w.URL = u.Scheme + "://" + u.Host + "/" + hidden
	}
	if w.Secret != "" {
		w.Secret = hidden
	}
	return json.Marshal(shownWebhook(w))
}

// Key returns the key that a secret stands for, as Standard Webhooks writes it: whsec_, and 24 to 64 bytes in base64.
// It returns false for any other text.
func (w Webhook) Key() ([]byte, bool) {
	encoded, is := strings.CutPrefix(w.Secret, "whsec_")
	key, err := base64.StdEncoding.DecodeString(encoded)
	return key, is && err == nil && len(key) >= 24 && len(key) <= 64
}

func (w *Webhook) settings() *table {
	t := &table{}
	add(t, "url", &w.URL, "", "Address to post to, by http or https. Its path and query are not logged.")
	add(t, "on", &w.On, nil, "Events that are told: waiting, ended, failed and agent_down. The default is all but ended.").each(cleanEvent, `^(`+strings.Join(notifyEvents, "|")+`)$`)
	add(t, "agents", &w.Agents, nil, "Ids of the agents whose events are told, with * for any characters. The default is all.").noCommas()
	add(t, "secret", &w.Secret, "", "Secret that the messages are signed with, as Standard Webhooks has it: whsec_ and 24 to 64 bytes in base64. Without one they are not signed.")
	add(t, "content", &w.Content, false, "Also send what is asked and answered, and the input of a tool call, redacted and up to 2000 bytes of each.")
	return t
}

// cleanEvent returns the name of an event, or what to write instead.
func cleanEvent(text string) (clean, wrong string) {
	if slices.Contains(notifyEvents, text) {
		return text, ""
	}
	wrong = "want waiting, ended, failed or agent_down"
	if near := suggest.Nearest(text, notifyEvents); near != "" {
		wrong += ": did you mean " + near + "?"
	}
	return "", wrong
}

// check does not repeat what may be a secret.
func (w *Webhook) check(report reporter) {
	if len(w.On) == 0 {
		w.On = notifyUsual
	}
	u, err := url.Parse(w.URL)
	switch {
	case w.URL == "":
		report("url", "missing; write where to post to, such as https://ntfy.sh/TOPIC")
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		report("url", "want an http or https address, such as https://ntfy.sh/TOPIC")
	case u.User != nil:
		report("url", "it contains a user or a password, which are not sent: leave them out")
	case len(w.URL) > 2048:
		report("url", "it has more than 2048 bytes")
	}
	if _, is := w.Key(); w.Secret != "" && !is {
		report("secret", "want whsec_ and 24 to 64 random bytes in base64, such as that of: echo whsec_$(openssl rand -base64 32)")
	}
	for _, id := range w.Agents {
		if err := core.CheckAgentID(core.AgentID(strings.ReplaceAll(id, "*", "x"))); err != nil {
			report("agents", core.AsFault(err).Message)
		}
	}
}
