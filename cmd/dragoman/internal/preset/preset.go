package preset

import (
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// Agent is a coding agent, and how a hub runs it.
type Agent struct {
	// Name is its id at the hub, Title what people call it.
	Name, Title string
	// Package is what npm installs, with the version that the tests run; "" if npm does not have it.
	Package string
	// Node is the oldest version of Node that the package runs on; "" for one without Node.
	Node string
	// Home says how to install an agent that npm does not have.
	Home string
	// Note says what the agent does otherwise than the others; "" for nothing.
	Note string
	// Keys are the variables of its key, its model and its address, which are passed on where they are set.
	Keys []string

	entry config.Agent
}

// Agents are the agents, in the order in which they are listed.
var Agents = []Agent{
	{
		Name: "claude", Title: "Claude Code", Package: "@agentclientprotocol/claude-agent-acp@0.101.0", Node: "22",
		Keys:  []string{"ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: run("claude-agent-acp"), Mode: "default"},
	},
	{
		Name: "codex", Title: "Codex", Package: "@agentclientprotocol/codex-acp@2.6.0", Node: "20",
		Keys:  []string{"OPENAI_API_KEY", "CODEX_HOME"},
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: with(run("codex-acp"), "NO_BROWSER=1"), Mode: "read-only"},
	},
	{
		Name: "gemini", Title: "Gemini CLI", Package: "@google/gemini-cli@0.61.0", Node: "20",
		Keys:  []string{"GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: with(run("gemini", "--acp"), TrustWorkspace+"=true")},
	},
	{
		Name: "opencode", Title: "OpenCode", Package: "opencode-ai@1.18.33",
		Note:  `it asks before it changes files only if its opencode.json has "permission": {"edit": "ask", "bash": "ask"}`,
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: run("opencode", "acp")},
	},
	{
		Name: "pi", Title: "pi", Package: "@earendil-works/pi-coding-agent@1.6.0", Node: "22.19",
		Note:  "it changes files and runs commands without asking",
		Keys:  []string{"ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENAI_API_KEY"},
		entry: config.Agent{Dialect: config.SpeaksPiRPC, Process: run("pi", "--mode", "rpc")},
	},
	{
		Name: "qwen", Title: "Qwen Code", Package: "@qwen-code/qwen-code@0.24.4", Node: "22",
		Keys:  []string{"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL"},
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: run("qwen", "--acp"), Mode: "default"},
	},
	{
		Name: "goose", Title: "Goose", Home: "as https://block.github.io/goose says, and set it up with 'goose configure'",
		entry: config.Agent{Dialect: config.SpeaksEditor, Process: run("goose", "acp")},
	},
}

// TrustWorkspace is the variable by which Gemini CLI trusts its working directory.
const TrustWorkspace = "GEMINI_CLI_TRUST_WORKSPACE"

func run(command ...string) config.Process { return config.Process{Command: command} }

func with(p config.Process, env ...string) config.Process {
	p.Env = env
	return p
}

// Named returns the agent with a name, and whether there is one.
func Named(name string) (Agent, bool) {
	i := slices.IndexFunc(Agents, func(a Agent) bool { return a.Name == name })
	if i < 0 {
		return Agent{}, false
	}
	return Agents[i], true
}

// Of returns the agent that a command runs: by its program, or by its package.
func Of(command []string) (Agent, bool) {
	for _, word := range command {
		word = filepath.ToSlash(word)
		program := strings.TrimSuffix(path.Base(word), path.Ext(word))
		for _, a := range Agents {
			module := a.module()
			if program == a.Program() || module != "" && (word == module || strings.HasPrefix(word, module+"@") || strings.Contains(word, "/"+module+"/")) {
				return a, true
			}
		}
	}
	return Agent{}, false
}

// Program returns the name of its program.
func (a Agent) Program() string { return a.entry.Command[0] }

// Mode returns the mode that its sessions are set to so that it asks before it changes files; "" if it asks by itself,
// or if its own settings say so.
func (a Agent) Mode() string { return a.entry.Mode }

// module returns its package without the version.
func (a Agent) module() string { return a.Package[:max(0, strings.LastIndexByte(a.Package, '@'))] }

// Version returns the version of its package.
func (a Agent) Version() string { return a.Package[strings.LastIndexByte(a.Package, '@')+1:] }

// Install says how to install the agent, as the end of "install it".
func (a Agent) Install() string {
	if a.Package == "" {
		return a.Home
	}
	text := "with 'npm install --global " + a.Package + "'"
	if a.Node != "" {
		text += ", on Node " + a.Node + " or later"
	}
	return text
}

// Entry returns the agent as the settings have it. Of its keys it gets those that an environment has.
func (a Agent) Entry(environ []string) config.Agent {
	e := a.entry
	e.Name, e.Capabilities = a.Name, []string{"code"}
	for _, key := range a.Keys {
		if slices.ContainsFunc(environ, func(v string) bool { return strings.HasPrefix(v, key+"=") && edge.Word(v[len(key)+1:]) != "" }) {
			e.Env = append(slices.Clip(e.Env), key)
		}
	}
	return e
}
