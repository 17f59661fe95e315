package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The dialects of the agents that the hub runs or connects to itself.
const (
	SpeaksText   = "text"
	SpeaksEditor = "editor"
	SpeaksPiRPC  = "pi-rpc"
	SpeaksNative = "native"
	SpeaksA2A    = "a2a"
)

// Speaks are the dialects that a command can speak on its stdin and stdout.
var Speaks = []string{SpeaksText, SpeaksEditor, SpeaksPiRPC, SpeaksNative}

// NotACP says what to write instead of acp, which is the name of another dialect.
const NotACP = "the Agent Client Protocol of editors is called " + SpeaksEditor + " here"

// supervised are the dialects of the agents of the settings.
var supervised = append(slices.Clone(Speaks), SpeaksA2A)

// Process is a child process.
type Process struct {
	// Command is the program and its arguments.
	Command []string `json:"command,omitempty"`
	// Env lists the variables that it gets besides PATH, HOME, LANG and TMPDIR: NAME passes on
	// that of the hub, NAME=value sets one.
	Env []string `json:"env,omitempty"`
	// Dir is its working directory; "" is that of the hub.
	Dir string `json:"cwd,omitempty"`
}

// Remote is an address to connect to.
type Remote struct {
	URL string `json:"url,omitempty"`
	// TokenFile has the token to send as Bearer; it is read for each connection.
	TokenFile string `json:"token_file,omitempty"`
}

// Agent is an agent that the hub runs or connects to itself.
type Agent struct {
	// Name is the id of the agent.
	Name    string `json:"name"`
	Dialect string `json:"dialect"`
	Process
	Remote
	Capabilities  []string `json:"capabilities,omitempty"`
	Domains       []string `json:"domains,omitempty"`
	Model         string   `json:"model,omitempty"`
	MaxConcurrent int      `json:"max_concurrent,omitempty"`
	// Fallback are the ids of the agents that are asked in its place where it cannot answer, the preferred
	// one first.
	Fallback []string `json:"fallback,omitempty"`
	// Warm is how many processes of pi are kept ready.
	Warm int `json:"warm,omitempty"`
	// Auth is the method to authenticate an editor agent with.
	Auth string `json:"auth,omitempty"`
	// Mode and Options are what the sessions of an editor agent are set to, as it announces them; Model
	// too, where it is one.
	Mode    string  `json:"mode,omitempty"`
	Options Options `json:"options,omitempty"`
	// Tools offers the tools of the hub to the agent, where its dialect has a way; nil is true.
	Tools *bool `json:"tools,omitempty"`
}

// Pack is an MCP server whose tools the hub offers.
type Pack struct {
	// Name is the id of the pack, and the prefix of its tools.
	Name string `json:"name"`
	Process
	Remote
	// Concurrent is how many calls run at once, ResultBytes the maximum size of a result.
	Concurrent  int  `json:"concurrent,omitempty"`
	ResultBytes Size `json:"result_bytes,omitempty"`
	// Timeout is how long a call may take without progress, MaxTime with it.
	Timeout Time `json:"timeout,omitempty"`
	MaxTime Time `json:"max_time,omitempty"`
}

// Agents is the list of agents of the settings.
type Agents []Agent

// Packs is the list of packs of the settings.
type Packs []Pack

// The limits of a pack: those of package adapters/mcp/pack.
const (
	maxPackResult  = 8 << 20
	defaultMaxTime = 300 * time.Second
)

func (a *Agents) read(path string, raw any, report reporter) {
	*a = readEntries[Agent](path, raw, report)
	onlyOnce(path, a.Names(), report)
}

func (p *Packs) read(path string, raw any, report reporter) {
	*p = readEntries[Pack](path, raw, report)
	onlyOnce(path, p.Names(), report)
}

// String describes the agents: their names.
func (a Agents) String() string { return strings.Join(a.Names(), ", ") }

// String describes the packs: their names.
func (p Packs) String() string { return strings.Join(p.Names(), ", ") }

// Names returns the ids of the agents, in order.
func (a Agents) Names() []string { return each(a, func(one Agent) string { return one.Name }) }

// Names returns the ids of the packs, in order.
func (p Packs) Names() []string { return each(p, func(one Pack) string { return one.Name }) }

func (a *Agent) settings() *table {
	t := &table{}
	add(t, "name", &a.Name, "", "Id of the agent.").notEmpty()
	add(t, "dialect", &a.Dialect, "", "What it speaks. The default is text, with a url a2a.").oneOf(supervised...).but("acp", NotACP)
	a.Process.settings(t)
	a.Remote.settings(t)
	add(t, "capabilities", &a.Capabilities, nil, "Capabilities that it is found by.").noCommas()
	add(t, "domains", &a.Domains, nil, "Domains that it is found by.").noCommas()
	add(t, "model", &a.Model, "", "Model that it uses. The sessions of an editor agent are set to it.")
	add(t, "max_concurrent", &a.MaxConcurrent, 0, "How many tasks it runs at once. The default is 1.").atLeast(0)
	add(t, "fallback", &a.Fallback, nil, "Ids of the agents that are asked in its place where it is down, has no room, or refuses for a rate, a quota or a login: the preferred one first.")
	add(t, "warm", &a.Warm, 0, "How many processes of pi are kept ready.").atLeast(0)
	add(t, "auth", &a.Auth, "", "Method to authenticate an editor agent with.")
	add(t, "mode", &a.Mode, "", "Mode that the sessions of an editor agent are set to.")
	add(t, "options", &a.Options, nil, "What else the sessions of an editor agent are set to: ids and values as it announces them, such as {effort: high, web: true}.")
	add(t, "tools", &a.Tools, nil, "Whether the tools of the hub are offered to it. The default is true.")
	return t
}

func (p *Pack) settings() *table {
	t := &table{}
	add(t, "name", &p.Name, "", "Id of the pack, and prefix of its tools.").matching(`^[A-Za-z0-9_-]{1,64}$`, "1 to 64 letters, digits, - and _")
	p.Process.settings(t)
	p.Remote.settings(t)
	add(t, "concurrent", &p.Concurrent, 0, "How many calls run at once. The default is 16.").atLeast(0)
	add(t, "result_bytes", (*int64)(&p.ResultBytes), 0, "Maximum size of a result. The default is 4 MiB.").bytes().atLeast(1).atMost(maxPackResult)
	add(t, "timeout", (*time.Duration)(&p.Timeout), 0, "How long a call may take without progress. The default is 60s.")
	add(t, "max_time", (*time.Duration)(&p.MaxTime), 0, "How long a call may take with progress, up to limits.max_tool_timeout. The default is 300s.")
	return t
}

func (p *Process) settings(t *table) {
	add(t, "command", &p.Command, nil, "Program and arguments of a child process.").noCommas().path()
	add(t, "env", &p.Env, nil, "Variables that it gets besides PATH, HOME, LANG and TMPDIR: NAME passes on that of the hub, NAME=value sets one.").noCommas()
	add(t, "cwd", &p.Dir, "", "Working directory. The default is that of the hub.").path()
}

func (r *Remote) settings(t *table) {
	add(t, "url", &r.URL, "", "Address to connect to, instead of a command.")
	add(t, "token_file", &r.TokenFile, "", "File with the token to send as Bearer.").path()
}

// Check returns what to change about the agent, a line for each of its members.
func (a Agent) Check() error { return checked(&a) }

// Check returns what to change about the pack, a line for each of its members.
func (p Pack) Check() error { return checked(&p) }

func checked(e entry) error {
	var all []error
	e.check(func(member, text string) { all = append(all, fmt.Errorf("%s: %s", member, text)) })
	return errors.Join(all...)
}

func (a *Agent) check(report reporter) {
	if a.Name == "" {
		report("name", "missing; give the agent an id")
	} else if err := core.CheckAgentID(core.AgentID(a.Name)); err != nil {
		report("name", core.AsFault(err).Message)
	}
	a.checkFallback(report)
	if a.Dialect == "" {
		a.Dialect = SpeaksText
		if a.URL != "" && len(a.Command) == 0 {
			a.Dialect = SpeaksA2A
		}
	}
	if !slices.Contains(supervised, a.Dialect) {
		return // it is refused, and the others depend on it
	}
	if a.Warm > 0 && a.Dialect != SpeaksPiRPC {
		report("warm", "only "+SpeaksPiRPC+" agents have it: leave it out")
	}
	if a.Auth != "" && a.Dialect != SpeaksEditor {
		report("auth", "only "+SpeaksEditor+" agents have it: leave it out")
	}
	a.checkOptions(report)
	if a.Dialect == SpeaksA2A {
		a.Process.checkNone(report, "an "+SpeaksA2A+" agent is reached at its url")
		a.checkURL(report)
		return
	}
	a.Remote.checkNone(report, "a "+a.Dialect+" agent is a command")
	a.checkProcess(report)
}

func (a *Agent) checkFallback(report reporter) {
	if len(a.Fallback) == 0 {
		return
	}
	if _, err := core.ParseAddress(strings.Join(append([]string{a.Name}, a.Fallback...), ",")); err != nil {
		report("fallback", core.AsFault(err).Message)
	}
}

func (a *Agent) checkOptions(report reporter) {
	if a.Dialect != SpeaksEditor {
		absent(report, "only "+SpeaksEditor+" agents have it", map[string]bool{"mode": a.Mode != "", "options": len(a.Options) > 0})
		return
	}
	for _, name := range []string{core.OptionMode, core.OptionModel} {
		if value, is := a.Options[name]; is {
			report("options", "write "+name+": "+value+" beside options, not in them")
		}
	}
	if err := a.Set().Check(); err != nil {
		report("options", core.AsFault(err).Message)
	}
}

// Set returns what the sessions of an editor agent are set to.
func (a Agent) Set() core.Options {
	all := core.Options{}
	maps.Copy(all, a.Options)
	for name, value := range map[string]string{core.OptionMode: a.Mode, core.OptionModel: a.Model} {
		if value != "" {
			all[name] = value
		}
	}
	return all
}

// Options is a setting of names and values, of which each is a text, a number, true or false.
type Options core.Options

func (o *Options) read(path string, raw any, report reporter) {
	object, is := raw.(map[string]any)
	if !is {
		report(path, "want names and values such as {effort: high, web: true}, got "+shown(raw))
		return
	}
	*o = Options{}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		switch value := object[name].(type) {
		case string, bool, int, int64, float64:
			(*o)[name] = fmt.Sprint(value)
		default:
			report(path+"."+name, "want a text, a number, true or false, got "+shown(value))
		}
	}
}

func (p *Pack) check(report reporter) {
	if p.Name == "" {
		report("name", "missing; it begins the names of the tools")
	}
	switch {
	case len(p.Command) > 0 && p.URL != "":
		report("url", "a pack is a command or a url, not both: remove one")
	case len(p.Command) > 0:
		p.Remote.checkNone(report, "a command gets no token: pass it on with env")
		p.checkProcess(report)
	case p.URL != "":
		p.Process.checkNone(report, "a pack with a url has no process")
		p.checkURL(report)
	case p.TokenFile != "":
		report("url", "missing; write the address that the token is for")
	default:
		report("command", "missing; write the program and its arguments as a list, or a url")
	}
	if longest := cmp.Or(time.Duration(p.MaxTime), defaultMaxTime); time.Duration(p.Timeout) > longest {
		report("timeout", fmt.Sprintf("a call takes at most max_time, %s: write less, or raise max_time", FormatTime(longest)))
	}
}

func (p Process) checkProcess(report reporter) {
	if len(p.Command) == 0 || p.Command[0] == "" {
		report("command", "missing; write the program and its arguments as a list, such as [gemini, --acp]")
	}
	for i, v := range p.Env {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsAny(name, " \t\n") {
			report(fmt.Sprintf("env[%d]", i), fmt.Sprintf("want NAME or NAME=value, got %s", shown(v)))
		}
	}
}

// checkNone reports the members of a process where there is none.
func (p Process) checkNone(report reporter, why string) {
	absent(report, why, map[string]bool{"command": len(p.Command) > 0, "env": len(p.Env) > 0, "cwd": p.Dir != ""})
}

// checkNone reports the members of a remote where there is none.
func (r Remote) checkNone(report reporter, why string) {
	absent(report, why, map[string]bool{"url": r.URL != "", "token_file": r.TokenFile != ""})
}

func (r Remote) checkURL(report reporter) {
	u, err := url.Parse(r.URL)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		why := "want an http or https address, got " + shown(r.URL)
		if with, err := url.Parse("http://" + r.URL); err == nil && with.Host != "" && !strings.Contains(r.URL, "://") {
			why += ": write it with http:// or https:// before it"
		}
		report("url", why)
	case u.User != nil:
		report("url", "it contains a password: use token_file")
	}
}

// checkTogether reports what is wrong between settings.
func (c Config) checkTogether(report reporter) {
	for i, p := range c.Packs {
		if time.Duration(p.MaxTime) > c.Limits.MaxToolTimeout {
			report(fmt.Sprintf("packs[%d].max_time", i), fmt.Sprintf("it is over limits.max_tool_timeout, %s: write less, or raise that limit", FormatTime(c.Limits.MaxToolTimeout)))
		}
	}
	if c.Auth.Rules != "" && !c.Authenticates() {
		report("auth.rules", "nobody has to authenticate, so rules would bind nobody: set auth.tokens, auth.ssh_keys, auth.jwt or tls.client_ca too")
	}
}
