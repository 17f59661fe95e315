package pi

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// slashCommand is a prompt that the hub answers itself.
type slashCommand struct {
	name, description string
	// run returns the answer.
	run func(s *Server, x *request, argument string) string
}

// slashCommands returns all slash commands. A prompt with another name is for the agent.
func slashCommands() []slashCommand {
	return []slashCommand{
		{"agents", "List the agents that can be talked with", slashAgents},
		{"use", "Talk with another agent: /use AGENT", slashUse},
		{"usage", "Show the tokens of this session", slashUsage},
		{"help", "List these commands", slashHelp},
	}
}

// slash returns the command that a message is, with its argument.
func slash(message string) (c slashCommand, argument string, ok bool) {
	word, argument, _ := strings.Cut(strings.TrimSpace(message), " ")
	name, ok := strings.CutPrefix(word, "/")
	all := slashCommands()
	i := slices.IndexFunc(all, func(c slashCommand) bool { return ok && c.name == name })
	if i < 0 {
		return c, "", false
	}
	return all[i], strings.TrimSpace(argument), true
}

// checkQueueable returns why a message cannot be queued, or "": a slash command cannot (facts,
// section 3.5).
func checkQueueable(message string) (problem string) {
	if c, _, ok := slash(message); ok {
		return `Extension command "/` + c.name + `" cannot be queued. Use prompt() or execute the command when not streaming.`
	}
	return ""
}

// answerSlash answers a prompt in a run without a task.
func (x *request) answerSlash(message userMessage, text string) command.Outcome {
	ss := x.target
	r := newRun(ss, x)
	ss.run = r
	at := time.Now()
	st := r.begin([]userMessage{message}, nil, func(v *render.View) {
		v.SpeakAs(hubName, conversation.API)
		e := core.Event{At: at}
		_, _ = v.Text(e, core.Text{Text: text}), v.Done(e, core.Done{}) // a view returns no error
	})
	st.takeMessages()
	r.endRun()
	r.closeRun()
	return command.Outcome{}
}

// hubName is the model of the hub's own answers.
const hubName = "hub"

func slashHelp(*Server, *request, string) string {
	var b strings.Builder
	for _, c := range slashCommands() {
		fmt.Fprintf(&b, "/%s: %s\n", c.name, c.description)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maxSlashAgents is how many agents /agents lists.
const maxSlashAgents = 200

func slashAgents(s *Server, x *request, _ string) string {
	all, more := s.hub.AgentPage(x.client.principal, "", maxSlashAgents, func(core.Card) bool { return true })
	if len(all) == 0 {
		return "No agent is here."
	}
	var b strings.Builder
	for _, a := range all {
		fmt.Fprintf(&b, "%s (%s, %s)", a.ID, a.Dialect, a.Load.State)
		if what := strings.Join(slices.Concat(a.Capabilities, a.Domains), ", "); what != "" {
			b.WriteString(": " + shortName(what))
		}
		if a.ID == x.target.agent.Agent() {
			b.WriteString(" (you talk with it)")
		}
		b.WriteByte('\n')
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %d more: /use AGENT talks with any of them\n", more)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func slashUse(s *Server, x *request, argument string) string {
	ss := x.target
	id := core.AgentID(argument)
	if id == "" {
		if ss.agent.IsZero() {
			return "You talk with whoever is free. Name an agent: /use AGENT"
		}
		return "You talk with " + ss.agent.String() + ". Name another: /use AGENT"
	}
	a, ok := s.hub.Agent(x.client.principal, id)
	if ok {
		ss.bind(new(modelOf(a)))
		return "You talk with " + string(a.ID) + " now."
	}
	text := fmt.Sprintf("No agent %q is here.", id)
	if near := s.hub.Nearest(x.client.principal, id); len(near) > 0 {
		names := make([]string, len(near))
		for i, n := range near {
			names[i] = string(n)
		}
		text += " The nearest: " + strings.Join(names, ", ")
	}
	return text
}

func slashUsage(_ *Server, x *request, _ string) string {
	var u core.Usage
	for _, m := range x.target.tree.Messages() {
		u = u.Add(m.Usage)
	}
	return fmt.Sprintf("This session has used %d tokens: %d input, %d output, %d read from a cache, %d written to one.",
		u.Input+u.Output+u.Thinking+u.CacheRead+u.CacheWrite, u.Input, u.Output+u.Thinking, u.CacheRead, u.CacheWrite)
}

// getCommands lists the slash commands (facts, section 4.7).
func getCommands(*Server, *request) command.Outcome {
	list := []map[string]string{}
	for _, c := range slashCommands() {
		list = append(list, map[string]string{"name": c.name, "description": c.description, "source": "extension"})
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{"commands": list})}
}
