package service

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// secrets are the variables that agents are given when they join, by agent id; everyAgent's
// are for all. They are in a file of their own because settings are shown. No error quotes
// the file.
type secrets map[core.AgentID]map[string]string

// everyAgent is not a valid agent id.
const everyAgent = "*"

// variableName is a valid name of an environment variable.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// readSecrets reads the secrets file: a map of agents, each with a map of variables.
// Without a path there are no secrets.
func readSecrets(path string) (secrets, error) {
	if path == "" {
		return nil, nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		var unread *fs.PathError
		if errors.As(err, &unread) {
			err = unread.Err
		}
		return nil, fmt.Errorf("coven.secrets: %s: %w; name a YAML file that the hub may read", path, err)
	}
	all, err := config.ReadYAML(data)
	if errors.Is(err, config.ErrManyDocuments) {
		return nil, fmt.Errorf("coven.secrets: %s: %w", path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("coven.secrets: %s is not YAML%s", path, placeOf(err))
	}
	read := secrets{}
	for agent, of := range all {
		variables, ok := of.(map[string]any)
		if err := core.CheckAgentID(core.AgentID(agent)); !ok || err != nil && agent != everyAgent {
			return nil, fmt.Errorf("coven.secrets: %s: want the id of an agent, or \"*\" for all, and below it NAME: VALUE", path)
		}
		read[core.AgentID(agent)] = map[string]string{}
		for name, value := range variables {
			text, ok := value.(string)
			switch {
			case !variableName.MatchString(name):
				return nil, fmt.Errorf("coven.secrets: %s: a name below %q cannot be one of a variable: use letters, digits and _", path, agent)
			case !ok || !utf8.ValidString(text) || strings.ContainsRune(text, 0):
				return nil, fmt.Errorf("coven.secrets: %s: %s of %q is not text: write it in quotes", path, name, agent)
			}
			read[core.AgentID(agent)][name] = text
		}
	}
	return read, nil
}

// of returns the variables of an agent: its own, and those of all agents that it does not
// override.
func (s secrets) of(agent core.AgentID) map[string]string {
	told := maps.Clone(s[everyAgent])
	if told == nil {
		return s[agent]
	}
	maps.Copy(told, s[agent])
	return told
}

var lineOfError = regexp.MustCompile(`line [0-9]+`)

// placeOf is the line of a YAML error, without what the line says.
func placeOf(err error) string {
	if line := lineOfError.FindString(err.Error()); line != "" {
		return " in " + line
	}
	return ""
}
