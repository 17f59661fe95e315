package pi

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// model describes an agent to pi clients (facts, section 4.3): provider is its dialect.
type model struct {
	ID            core.AgentID `json:"id"`
	Name          string       `json:"name"`
	API           string       `json:"api"`
	Provider      string       `json:"provider"`
	BaseURL       string       `json:"baseUrl"`
	Reasoning     bool         `json:"reasoning"`
	Input         []string     `json:"input"`
	Cost          cost         `json:"cost"`
	ContextWindow int          `json:"contextWindow"`
	MaxTokens     int          `json:"maxTokens"`
}

type cost struct {
	Input      int `json:"input"`
	Output     int `json:"output"`
	CacheRead  int `json:"cacheRead"`
	CacheWrite int `json:"cacheWrite"`
}

// What pi assumes of a model that does not say (facts, section 9.5).
const (
	contextWindow = 128_000
	maxTokens     = 16_384
)

// inputs are the kinds of input. All agents take the first.
var inputs = [...]string{"text", "image"}

func modelOf(a hub.AgentStatus) model {
	m := model{
		ID: a.ID, Name: shortName(cmp.Or(a.Name, string(a.ID))), API: conversation.API, Provider: a.Dialect, Reasoning: true, Input: inputs[:1],
		ContextWindow: windowOf(a.Card), MaxTokens: maxTokens,
	}
	if a.Features.Has(core.FeatureFiles) {
		m.Input = inputs[:]
	}
	return m
}

// binding is the agent that a session is bound to.
type binding struct {
	hub *hub.Hub
	// viewer is the owner of the session, with the rights of the client that subscribed last.
	viewer core.Principal
	// agent is zero until the first prompt has found an agent.
	agent core.Address
	model *model // of the agent, as it was last seen
}

// currentModel returns the model of the agent: the last one known, if it has left. It is nil for an
// agent that the viewer may not see.
func (b *binding) currentModel() *model {
	id := b.agent.Agent()
	if a, ok := b.hub.Agent(b.viewer, id); ok && id != "" {
		if b.model == nil {
			b.model = new(model)
		}
		*b.model = modelOf(a)
	} else if b.model != nil && b.model.ID != id {
		b.model = nil
	}
	return b.model
}

// knowsAgent reports whether the address names the agent of a known model.
func (b *binding) knowsAgent(to core.Address) bool {
	return b.model != nil && b.model.ID == to.Agent()
}

// window returns the context window of the agent, in tokens.
func (b *binding) window() int {
	if m := b.currentModel(); m != nil {
		return m.ContextWindow
	}
	return contextWindow
}

// summaryBudget is how many bytes of the conversation the agent can be sent to summarize:
// about what fits its context window.
func (b *binding) summaryBudget() int {
	return min(summaryBytes, b.window()*conversation.BytesPerToken*3/4)
}

// maxModels bounds the models in a list, which pi clients read whole, and maxModelName the name of
// each in bytes. A session can be bound to the other agents by their ids.
const (
	maxModels    = 1000
	maxModelName = 256
)

// models returns the agents that the client may see as models, by id.
func (x *request) models() []*model {
	list := []*model{}
	page, more := x.client.server.hub.AgentPage(x.client.principal, "", maxModels, func(core.Card) bool { return true })
	for _, a := range page {
		list = append(list, new(modelOf(a)))
	}
	if more > 0 {
		x.client.server.hub.Count("pi.models.cut")
	}
	return list
}

// shortName returns a name cut to maxModelName bytes.
func shortName(name string) string {
	if len(name) <= maxModelName {
		return name
	}
	return strings.ToValidUTF8(name[:maxModelName-len("…")], "") + "…"
}

func getModels(_ *Server, x *request) command.Outcome {
	return command.Outcome{Data: strictjson.Encode(map[string]any{"models": x.models()})}
}

// setModel binds the session to an agent.
func setModel(s *Server, x *request) command.Outcome {
	if m, was := x.modelBefore(); was {
		return command.Outcome{Data: strictjson.Encode(map[string]any{"model": x.target.bind(m)})}
	}
	provider, _ := x.Text("provider")
	id, _ := x.Text("modelId")
	a, ok := s.hub.Agent(x.client.principal, core.AgentID(id))
	if !ok || a.Dialect != provider {
		return command.Failed("Model not found: " + provider + "/" + id)
	}
	return command.Outcome{Data: strictjson.Encode(map[string]any{"model": x.target.bind(new(modelOf(a)))})}
}

// modelBefore returns the agent that x bound the session to before a restart, if x is done
// again: the agent may not be back yet.
func (x *request) modelBefore() (*model, bool) {
	var before struct{ Model *model }
	was := x.DecodePrior(&before) && before.Model != nil
	return before.Model, was
}

func (ss *session) bind(m *model) *model {
	ss.agent, ss.model = core.ToAgent(m.ID), m
	ss.watchQuestions()
	ss.addEntry(sessionfile.ModelChange{Provider: m.Provider, ModelID: string(m.ID)})
	return m
}

// cycleModel moves the session to the next agent, or the one before.
func cycleModel(s *Server, x *request) command.Outcome {
	if m, was := x.modelBefore(); was {
		return cycled(x, x.target.bind(m))
	}
	list := x.models()
	if len(list) <= 1 {
		return command.Outcome{Data: strictjson.Encode(nil)}
	}
	by := 1
	if x.Is("direction", `"backward"`) {
		by = -1
	}
	at := slices.IndexFunc(list, func(m *model) bool { return m.ID == x.target.agent.Agent() })
	if at < 0 && by < 0 {
		at = 0
	}
	return cycled(x, x.target.bind(list[(at+by+len(list))%len(list)]))
}

func cycled(x *request, m *model) command.Outcome {
	return command.Outcome{Data: strictjson.Encode(map[string]any{"model": m, "thinkingLevel": x.target.tree.ThinkingLevel(), "isScoped": false})}
}

// windowOf returns the context window in the metadata of an agent, or else pi's default.
func windowOf(c core.Card) int {
	const most = 1 << 30
	for _, name := range []string{"context_window", "contextWindow"} {
		raw, told := c.Metadata[name]
		if !told {
			continue
		}
		var n float64
		if json.Unmarshal(raw, &n) == nil && n >= 1 && n <= most {
			return int(n)
		}
	}
	return contextWindow
}

// thinkingNone is what clients set for the level that they are shown as off (facts, section
// 3.5).
const thinkingNone = "none"

// thinkingLevels are in the order in which they are cycled.
var thinkingLevels = []string{conversation.ThinkingOff, "low", "medium", "high", "xhigh"}

func setThinking(s *Server, x *request) command.Outcome {
	level, _ := x.Text("level")
	if level == thinkingNone {
		level = conversation.ThinkingOff
	}
	x.target.setThinkingLevel(level)
	return command.Outcome{}
}

// cycleThinking moves to the next level, and from the last to the first. Every agent has
// levels, and may ignore them.
func cycleThinking(s *Server, x *request) command.Outcome {
	at := slices.Index(thinkingLevels, x.target.tree.ThinkingLevel())
	level := thinkingLevels[(at+1)%len(thinkingLevels)]
	var before struct{ Level string }
	if x.DecodePrior(&before) {
		level = before.Level
	}
	x.target.setThinkingLevel(level)
	return command.Outcome{Data: strictjson.Encode(map[string]string{"level": level})}
}

// setThinkingLevel sets the level and tells the subscribers of a change.
func (ss *session) setThinkingLevel(level string) {
	if ss.tree.Level == level {
		return
	}
	ss.addEntry(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	ss.subscribers.send(ss.envelope.ThinkingLevel(level))
}

// thinkingContext returns the context that tells an agent the level, or nil before one is set.
func thinkingContext(level string) json.RawMessage {
	if level == "" {
		return nil
	}
	return strictjson.Encode(map[string]string{"thinking_level": level})
}
