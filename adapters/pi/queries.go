package pi

import (
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// The commands that only read the state of a session.

// getState returns, besides the members of the reference, the thread of the conversation,
// with which others can join it.
func getState(s *Server, x *request) command.Outcome {
	return command.Outcome{Data: wire.Encode(struct {
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
			return command.Outcome{Data: wire.Encode(map[string]any{"text": m.Text()})}
		}
	}
	return command.Outcome{Data: wire.Encode(map[string]any{"text": nil})}
}

// stats are the counts of get_session_stats (facts, section 4.6).
type stats struct {
	SessionFile       string        `json:"sessionFile,omitempty"`
	SessionID         core.ThreadID `json:"sessionId"`
	UserMessages      int           `json:"userMessages"`
	AssistantMessages int           `json:"assistantMessages"`
	ToolCalls         int           `json:"toolCalls"`
	ToolResults       int           `json:"toolResults"`
	TotalMessages     int           `json:"totalMessages"`
	Tokens            tokens        `json:"tokens"`
	Cost              float64       `json:"cost"`
}

type tokens struct {
	Input      int64 `json:"input"`
	Output     int64 `json:"output"`
	CacheRead  int64 `json:"cacheRead"`
	CacheWrite int64 `json:"cacheWrite"`
	Total      int64 `json:"total"`
}

func getStats(_ *Server, x *request) command.Outcome {
	all := x.target.tree.Messages()
	st := stats{SessionFile: x.target.file.Path(), SessionID: x.target.thread, TotalMessages: len(all)}
	var u core.Usage
	for _, m := range all {
		switch m.Role {
		case conversation.RoleUser:
			st.UserMessages++
		case conversation.RoleAssistant:
			st.AssistantMessages++
			st.ToolCalls += m.Calls
			u = u.Add(m.Usage)
		case conversation.RoleTool:
			st.ToolResults++
		}
	}
	output := u.Output + u.Thinking
	st.Tokens = tokens{u.Input, output, u.CacheRead, u.CacheWrite, u.Input + output + u.CacheRead + u.CacheWrite}
	return command.Outcome{Data: wire.Encode(st)}
}

// getContext returns the usage of the context window that the last answer reported.
func getContext(s *Server, x *request) command.Outcome {
	window := x.target.window()
	usage := map[string]any{"tokens": nil, "contextWindow": window, "percent": nil}
	if n := conversation.ReportedTokens(x.target.tree.Leaf); n > 0 {
		usage["tokens"], usage["percent"] = n, float64(n)*100/float64(window)
	}
	return command.Outcome{Data: wire.Encode(usage)}
}

type tool struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

// getTools lists the tools that the agent declares, and those that the hub and its packs
// offer to it.
func getTools(s *Server, x *request) command.Outcome {
	tools := []tool{}
	var can []string
	if a, ok := s.hub.Agent(x.target.agent.Agent()); ok {
		for _, name := range a.Tools {
			tools = append(tools, tool{Name: name, Description: "a tool of " + a.Name})
		}
		can = a.Capabilities
	}
	for _, t := range s.hub.ToolsFor(can) {
		tools = append(tools, tool{t.Name, t.Description})
	}
	return command.Outcome{Data: wire.Encode(map[string]any{"tools": tools})}
}

type skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	FilePath    string `json:"filePath"`
	Source      string `json:"source"`
}

// getSkills lists the capabilities and domains of the agent.
func getSkills(s *Server, x *request) command.Outcome {
	skills := []skill{}
	if a, ok := s.hub.Agent(x.target.agent.Agent()); ok {
		for _, c := range a.Capabilities {
			skills = append(skills, skill{Name: c, Description: "a capability of " + a.Name, Source: "path"})
		}
		for _, d := range a.Domains {
			skills = append(skills, skill{Name: d, Description: "a domain of " + a.Name, Source: "path"})
		}
	}
	return command.Outcome{Data: wire.Encode(map[string]any{"skills": skills})}
}
