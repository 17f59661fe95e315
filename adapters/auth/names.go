package auth

import (
	"errors"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// MaxPrincipalBytes bounds the name of a principal, which is part of every task.
const MaxPrincipalBytes = 256

// CheckPrincipal returns an error that says what is allowed if name cannot be the name of a
// principal. The rules are those of agent ids, commas aside, since a principal may join under its own
// name; besides it is not written as rules write roles, packs and patterns, and none that the hub
// gives. The error does not repeat the name, which may be a token written in the wrong place.
func CheckPrincipal(name string) error {
	if core.IsHubs(name) {
		return errors.New("principal: want another name: this one is given by the hub itself, as are local, client, editor, mcp, stdio and all that begin with \"hub \"")
	}
	return checkName(name)
}

func checkName(name string) error {
	if len(name) > MaxPrincipalBytes || core.CheckName(name) != nil || strings.Contains(name, "*") || reservedPrefix(name) {
		return fmt.Errorf("principal: want a name of 1 to %d bytes, such as alice, on one line, without control characters or blanks around it, "+
			"in letters of one script, not beginning with role: or pack:, and none that is an address (hub, *, capability:..., domain:...)", MaxPrincipalBytes)
	}
	return nil
}

// reservedPrefix reports whether a name would mean something else in rules.
func reservedPrefix(name string) bool {
	lower := strings.ToLower(name)
	return strings.HasPrefix(lower, "role:") || strings.HasPrefix(lower, "pack:")
}

// maxNames bounds the roles, and the agents, of a credential.
const maxNames = 256

// CheckRoles returns the names of roles without blanks around them, or an error that says what
// is allowed. The error does not repeat them.
func CheckRoles(names []string) ([]string, error) {
	return checkAll(names, "names", func(name string) bool { return checkName(name) == nil })
}

// CheckAgents returns ids of agents, in which * stands for any characters, without blanks around
// them, or an error that says what is allowed. The error does not repeat them.
func CheckAgents(patterns []string) ([]string, error) {
	return checkAll(patterns, "ids of agents, with * for any characters,", func(pattern string) bool {
		fixed := strings.ReplaceAll(pattern, "*", "")
		return len(pattern) <= MaxPrincipalBytes && pattern != "" && (fixed == "" || core.CheckAgentID(core.AgentID(fixed)) == nil)
	})
}

func checkAll(texts []string, what string, good func(string) bool) ([]string, error) {
	if len(texts) > maxNames {
		return nil, fmt.Errorf("want at most %d", maxNames)
	}
	all := make([]string, len(texts))
	for i, text := range texts {
		all[i] = strings.TrimSpace(text)
		if !good(all[i]) {
			return nil, fmt.Errorf("want %s of 1 to %d bytes, without control characters, and no addresses", what, MaxPrincipalBytes)
		}
	}
	return all, nil
}
