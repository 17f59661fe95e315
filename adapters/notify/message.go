package notify

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// The bounds of a message in bytes: of a name or a reason, and of each text of its content.
const (
	maxName    = 200
	maxContent = 2000
)

// message is what a webhook is told. Its form is the same for all.
type message struct {
	Type string    `json:"type"`
	At   time.Time `json:"timestamp"` // of the event
	// Text says it in one line, for those who show it as it is.
	Text string `json:"text"`
	// URL is that of the task or the agent in the console; "" if the hub has none.
	URL  string `json:"url,omitempty"`
	Data data   `json:"data"`

	content content
}

// data says it in members.
type data struct {
	Task   core.TaskID   `json:"task,omitempty"`
	Thread core.ThreadID `json:"thread,omitempty"`
	Agent  core.AgentID  `json:"agent,omitempty"`
	// From is the id of the requester.
	From     string    `json:"from,omitempty"`
	Approval *approval `json:"approval,omitempty"`
	Question *question `json:"question,omitempty"`
	// State is done, cancelled or failed, or that of an agent which is down.
	State string `json:"state,omitempty"`
	// Code is that of a failure, Reason what it says, or why an agent is down.
	Code   core.Code `json:"code,omitempty"`
	Reason string    `json:"reason,omitempty"`
	// Content is left out unless the webhook has it.
	Content *content `json:"content,omitempty"`
}

// approval is a tool call that waits for a decision, question a question that waits for an answer. Until is when
// that is too late.
type (
	approval struct {
		ID          string    `json:"id"`
		Tool        string    `json:"tool"`
		InputSHA256 string    `json:"input_sha256"`
		Until       time.Time `json:"until"`
	}
	question struct {
		ID    string    `json:"id"`
		Until time.Time `json:"until"`
	}
)

// content is what was said, redacted, and cut where it is long.
type content struct {
	Asked    string   `json:"asked,omitempty"`
	Answer   string   `json:"answer,omitempty"`
	Input    string   `json:"input,omitempty"`
	Question string   `json:"question,omitempty"`
	Options  []string `json:"options,omitempty"`
}

func newMessage(kind string, at time.Time, d data) message {
	return message{Type: kind, At: at.UTC(), Data: d}
}

// link sets the address of what the message is about in a console.
func (m *message) link(console string) {
	switch {
	case console == "":
	case m.Data.Task != "":
		m.URL = console + "/#/tasks/" + url.PathEscape(string(m.Data.Task))
	default:
		m.URL = console + "/#/agents/" + url.PathEscape(string(m.Data.Agent))
	}
}

// body returns the message as it is posted, with its content or without.
func (m message) body(withContent bool) []byte {
	if !withContent {
		m.Data = m.Data.withoutContent(m.Type)
	}
	m.Text = m.line(withContent)
	if withContent {
		c := m.content
		for _, text := range []*string{&c.Asked, &c.Answer, &c.Input, &c.Question} {
			*text = cut(visible.Text(*text), maxContent)
		}
		m.Data.Content = &c
	}
	return strictjson.Encode(m)
}

// withoutContent returns the members without what may quote a conversation: why a task has failed, and the title of a
// call, which some agents have in place of the name of the tool, such as the command that they want to run.
func (d data) withoutContent(kind string) data {
	if kind == Failed {
		d.Reason = ""
	}
	if d.Approval != nil && !isName.MatchString(d.Approval.Tool) {
		a := *d.Approval
		a.Tool = "a tool"
		d.Approval = &a
	}
	return d
}

// isName matches names of tools.
var isName = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// line says the message in one line.
func (m *message) line(withContent bool) string {
	d, who := &m.Data, plain(string(m.Data.Agent))
	if who == "" {
		who = "no agent"
	}
	until := func(at time.Time) string { return at.UTC().Format("2 Jan 15:04 UTC") }
	switch {
	case d.Approval != nil:
		return fmt.Sprintf("%s asks to run %s: decide until %s", who, plain(d.Approval.Tool), until(d.Approval.Until))
	case d.Question != nil && withContent:
		return fmt.Sprintf("%s asks: %s (until %s)", who, plain(m.content.Question), until(d.Question.Until))
	case d.Question != nil:
		return fmt.Sprintf("%s asks a question: answer until %s", who, until(d.Question.Until))
	case m.Type == Failed && d.Reason == "":
		return fmt.Sprintf("%s has failed (%s)", who, d.Code)
	case m.Type == Failed:
		return fmt.Sprintf("%s has failed (%s): %s", who, d.Code, plain(d.Reason))
	case m.Type == AgentDown:
		return fmt.Sprintf("%s is down (%s): %s", who, d.State, plain(d.Reason))
	case d.State == core.KindDone.String():
		return who + " is done"
	}
	return "a task of " + who + " was cancelled"
}

// plain returns a text of a peer in one line that no receiver takes for more than text: Slack reads commands, such
// as to call everybody, and links in angle brackets.
func plain(text string) string {
	return strings.NewReplacer("<", "‹", ">", "›").Replace(cut(visible.Line(text), maxName))
}

// cut cuts a text that is too long.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// wants reports whether the webhook is told of a message.
func (w Webhook) wants(m message) bool {
	return slices.Contains(w.On, m.Type) && (len(w.Agents) == 0 ||
		slices.ContainsFunc(w.Agents, func(pattern string) bool { return core.MatchGlob(pattern, string(m.Data.Agent)) }))
}
