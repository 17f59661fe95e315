package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The commands that only read the state of a session.

// getState returns, besides the members of the reference, the thread of the conversation,
// with which others can join it.
func getState(s *Server, x *request) command.Outcome {
	return command.Outcome{Data: strictjson.Encode(struct {
		sessionInfo
		Thread core.ThreadID `json:"thread"`
	}{x.target.info(), x.target.thread})}
}

func getMessages(_ *Server, x *request) command.Outcome {
	all := x.target.tree.Messages()
	b := append(make([]byte, 0, conversation.JSONSize(all)+16), `{"messages":`...)
	return command.Outcome{Data: append(conversation.AppendMessages(b, all), '}')}
}

func getLastText(_ *Server, x *request) command.Outcome {
	for _, m := range slices.Backward(x.target.tree.Messages()) {
		if m.Role == conversation.RoleAssistant {
			return command.Outcome{Data: strictjson.Encode(map[string]any{"text": m.Text()})}
		}
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{"text": nil})}
}

// getStats counts the messages and the tokens of the session (facts, section 4.6).
func getStats(_ *Server, x *request) command.Outcome {
	all := x.target.tree.Messages()
	roles, calls := map[string]int{}, 0
	var u core.Usage
	for _, m := range all {
		roles[m.Role]++
		if m.Role == conversation.RoleAssistant {
			calls += m.Calls
			u = u.Add(m.Usage)
		}
	}
	output := u.Output + u.Thinking
	data := map[string]any{
		"sessionId": x.target.thread, "userMessages": roles[conversation.RoleUser], "assistantMessages": roles[conversation.RoleAssistant],
		"toolCalls": calls, "toolResults": roles[conversation.RoleTool], "totalMessages": len(all), "cost": 0,
		"tokens": map[string]int64{
			"input": u.Input, "output": output, "cacheRead": u.CacheRead, "cacheWrite": u.CacheWrite, "total": u.Input + output + u.CacheRead + u.CacheWrite,
		},
	}
	if path := x.target.file.Path(); path != "" {
		data["sessionFile"] = path
	}
	return command.Outcome{Data: strictjson.Encode(data)}
}

// getContext returns the usage of the context window that the last answer reported.
func getContext(s *Server, x *request) command.Outcome {
	window := x.target.window()
	usage := map[string]any{"tokens": nil, "contextWindow": window, "percent": nil}
	if n := conversation.ReportedTokens(x.target.tree.Leaf); n > 0 {
		usage["tokens"], usage["percent"] = n, float64(n)*100/float64(window)
	}
	return command.Outcome{Data: strictjson.Encode(usage)}
}

// getTools lists the tools that the agent declares, and those that the hub and its packs
// offer to it.
func getTools(s *Server, x *request) command.Outcome {
	tools := []map[string]string{}
	add := func(name, description string) {
		tools = append(tools, map[string]string{"name": name, "description": description})
	}
	var can []string
	if a, ok := s.hub.Agent(x.client.principal, x.target.agent.Agent()); ok {
		for _, name := range a.Tools {
			add(name, "a tool of "+a.Name)
		}
		can = a.Capabilities
	}
	for _, t := range s.hub.ToolsFor(x.client.principal, can) {
		add(t.Name, t.Description)
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{"tools": tools})}
}

// getSkills lists the capabilities and domains of the agent.
func getSkills(s *Server, x *request) command.Outcome {
	skills := []map[string]string{}
	add := func(kind, agent string, names []string) {
		for _, name := range names {
			skills = append(skills, map[string]string{"name": name, "description": "a " + kind + " of " + agent, "filePath": "", "source": "path"})
		}
	}
	if a, ok := s.hub.Agent(x.client.principal, x.target.agent.Agent()); ok {
		add("capability", a.Name, a.Capabilities)
		add("domain", a.Name, a.Domains)
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{"skills": skills})}
}
