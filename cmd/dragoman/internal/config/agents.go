package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
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
	// Warm is how many processes of pi are kept ready.
	Warm int `json:"warm,omitempty"`
	// Auth is the method to authenticate an editor agent with.
	Auth string `json:"auth,omitempty"`
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

// list is a setting that is a list of objects.
type list interface {
	// read replaces the list, or says what to change.
	read(raw any) error
	// plain returns the list as a settings file has it.
	plain() any
}

func (a *Agents) read(raw any) error {
	all, err := readList[Agent](raw)
	if err == nil {
		*a = all
		err = checkAll(all, func(one Agent) (string, error) { return one.Name, one.Check() })
	}
	return err
}

func (a *Agents) plain() any { return append(Agents{}, *a...) }

func (p *Packs) read(raw any) error {
	all, err := readList[Pack](raw)
	if err == nil {
		*p = all
		err = checkAll(all, func(one Pack) (string, error) { return one.Name, one.check() })
	}
	return err
}

func (p *Packs) plain() any { return append(Packs{}, *p...) }

// String describes the agents: their names.
func (a Agents) String() string {
	var names []string
	for _, one := range a {
		names = append(names, one.Name)
	}
	return strings.Join(names, ", ")
}

// String describes the packs: their names.
func (p Packs) String() string {
	var names []string
	for _, one := range p {
		names = append(names, one.Name)
	}
	return strings.Join(names, ", ")
}

// readList reads a list of objects, or YAML text with one.
func readList[T any](raw any) ([]T, error) {
	if text, is := raw.(string); is {
		m, err := ReadYAML([]byte("list: " + text))
		if err != nil {
			return nil, err
		}
		if raw = m["list"]; raw == nil {
			return nil, nil
		}
	}
	items, is := raw.([]any)
	if !is {
		return nil, fmt.Errorf("want a list of objects with a name, got %s", shown(raw))
	}
	var all []T
	for i, item := range items {
		var one T
		text, err := json.Marshal(item)
		if err == nil {
			err = strictjson.DecodeKnown(text, strictjson.Limits{}, &one)
		}
		if err != nil {
			return nil, fmt.Errorf("entry %d: %w", i+1, err)
		}
		all = append(all, one)
	}
	return all, nil
}

// checkAll checks each entry and that no two have the same name.
func checkAll[T any](all []T, check func(T) (string, error)) error {
	names := map[string]bool{}
	for i, one := range all {
		name, err := check(one)
		switch {
		case err != nil && name != "":
			return fmt.Errorf("%s: %w", name, err)
		case err != nil:
			return fmt.Errorf("entry %d: %w", i+1, err)
		case names[name]:
			return fmt.Errorf("%s: the name is used twice", name)
		}
		names[name] = true
	}
	return nil
}

// Check returns an error that says what to change about the agent.
func (a Agent) Check() error {
	if a.Name == "" {
		return errors.New("name: missing")
	}
	if err := core.CheckAgentID(core.AgentID(a.Name)); err != nil {
		return errors.New(core.AsFault(err).Message)
	}
	all := append(slices.Clone(Speaks), SpeaksA2A)
	switch {
	case a.Dialect == "":
		return fmt.Errorf("dialect: missing; use %s", strings.Join(all, ", "))
	case !slices.Contains(all, a.Dialect):
		if near := suggest.Nearest(a.Dialect, all); near != "" {
			return fmt.Errorf("dialect %q: did you mean %s?", a.Dialect, near)
		}
		return fmt.Errorf("dialect %q: use %s", a.Dialect, strings.Join(all, ", "))
	case a.MaxConcurrent < 0:
		return errors.New("max_concurrent: want at least 1, or leave it out")
	case a.Warm < 0, a.Warm > 0 && a.Dialect != SpeaksPiRPC:
		return fmt.Errorf("warm: only %s agents have it, and it is a number of processes", SpeaksPiRPC)
	case a.Auth != "" && a.Dialect != SpeaksEditor:
		return fmt.Errorf("auth: only %s agents have it", SpeaksEditor)
	case a.Dialect == SpeaksA2A && len(a.Command) > 0:
		return fmt.Errorf("command: an %s agent is named by its url alone", SpeaksA2A)
	case a.Dialect == SpeaksA2A:
		return a.checkURL()
	case a.URL != "" || a.TokenFile != "":
		return fmt.Errorf("url: a %s agent is a command", a.Dialect)
	}
	return a.checkProcess()
}

// packName is what a pack may be called: its tools are called by names with a prefix.
var packName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

func (p Pack) check() error {
	switch {
	case p.Name == "":
		return errors.New("name: missing")
	case !packName.MatchString(p.Name):
		return errors.New("name: want 1 to 64 letters, digits, - and _")
	case len(p.Command) > 0 && p.URL != "":
		return errors.New("url: a pack is a command or a url, not both")
	case p.Concurrent < 0:
		return errors.New("concurrent: want at least 1, or leave it out")
	case p.URL != "" || p.TokenFile != "":
		return p.checkURL()
	}
	return p.checkProcess()
}

func (p Process) checkProcess() error {
	if len(p.Command) == 0 || p.Command[0] == "" {
		return errors.New("command: missing; write the program and its arguments as a list")
	}
	for _, v := range p.Env {
		if name, _, _ := strings.Cut(v, "="); name == "" || strings.ContainsAny(name, " \t\n") {
			return fmt.Errorf("env: %q: write NAME or NAME=value", v)
		}
	}
	return nil
}

func (r Remote) checkURL() error {
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("url: want an http or https address, got %q", r.URL)
	}
	if u.User != nil {
		return errors.New("url: it contains a password: use token_file")
	}
	return nil
}
