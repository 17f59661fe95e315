package credentials

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
)

// Secrets are the variables that Coven agents are given when they join, by agent id; those of everyAgent are for all.
// They are in a file of their own because settings are shown.
type Secrets map[core.AgentID]map[string]string

// everyAgent is not a valid agent id.
const everyAgent = "*"

// variableName matches the names of environment variables.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ReadSecrets reads the secrets file (the setting coven.secrets): a map of agents, each with a map of variables. Without
// a path there are none.
func ReadSecrets(path string) (Secrets, error) {
	f := file{setting: "coven.secrets", path: path}
	d, err := f.readSecrets()
	if err != nil {
		return nil, err
	}
	read := Secrets{}
	for _, agent := range slices.Sorted(maps.Keys(d.Values)) {
		variables, ok := d.Values[agent].(map[string]any)
		if err := core.CheckAgentID(core.AgentID(agent)); !ok || err != nil && agent != everyAgent {
			f.failAt(d.Lines[agent], `want the id of an agent, or "*" for all, and below it NAME: VALUE`)
			continue
		}
		of := map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(variables)) {
			text, ok := variables[name].(string)
			switch line := d.Lines[agent+"."+name]; {
			case !variableName.MatchString(name):
				f.failAt(line, "a name below %q cannot be one of a variable: use letters, digits and _", agent)
			case !ok || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
				f.failAt(line, "%s of %q is not text: write it in quotes", name, agent)
			}
			of[name] = text
		}
		read[core.AgentID(agent)] = of
	}
	return read, errors.Join(f.mistakes...)
}

// Of returns the variables of an agent: its own, and those of all agents that it does not override.
func (s Secrets) Of(agent core.AgentID) map[string]string {
	merged := maps.Clone(s[everyAgent])
	if merged == nil {
		return s[agent]
	}
	maps.Copy(merged, s[agent])
	return merged
}

// minSigningBytes is the minimum length of a signing secret, so that it cannot be guessed from a signature.
const minSigningBytes = 16

// ReadSigningSecrets reads the file of the secrets that Parallax agents sign messages with (the setting
// parallax.secrets): a map of agents, each with its secret. Without a path there are none.
func ReadSigningSecrets(path string) (map[core.AgentID][]byte, error) {
	f := file{setting: "parallax.secrets", path: path}
	d, err := f.readSecrets()
	if err != nil {
		return nil, err
	}
	read := map[core.AgentID][]byte{}
	for _, agent := range slices.Sorted(maps.Keys(d.Values)) {
		text, ok := d.Values[agent].(string)
		switch line := d.Lines[agent]; {
		case !ok || core.CheckAgentID(core.AgentID(agent)) != nil:
			f.failAt(line, "want ids of agents, each with its secret in quotes")
		case len(text) < minSigningBytes:
			f.failAt(line, "the secret of %q is short: want at least %d bytes", agent, minSigningBytes)
		}
		read[core.AgentID(agent)] = []byte(text)
	}
	return read, errors.Join(f.mistakes...)
}
