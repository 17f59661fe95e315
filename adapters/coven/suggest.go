package coven

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// component looks up what is for no peer in particular.
var component = hub.ComponentIdentity("coven", wire.Name).Principal

// maxSuffix is the highest number that is tried before an id gets a random suffix.
const maxSuffix = 99

// suggestID returns a valid id like the given one that is not taken and that the principal may
// register, or "" if there is none. It is not reserved.
func (s *session) suggestID(id core.AgentID) core.AgentID {
	base := cleanID(id)
	for n := range maxSuffix + 1 {
		free := core.AgentID(base)
		if n > 0 {
			free = core.AgentID(fmt.Sprintf("%s-%d", base, n))
		}
		if _, taken := s.hub.Agent(component, free); !taken && core.CheckAgentID(free) == nil && s.opts.Principal.MayRegister(free) {
			return free
		}
	}
	if free := core.AgentID(base + "-" + instanceID()); s.opts.Principal.MayRegister(free) {
		return free
	}
	return ""
}

// cleanID returns an id without characters that no id may have, and with room for a
// suffix.
func cleanID(id core.AgentID) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, wire.CutText(string(id), core.MaxIDBytes-len("-")-instanceIDLength))
	text = strings.TrimSpace(text)
	if core.CheckAgentID(core.AgentID(text)) != nil {
		return "agent" // the text is reserved, or empty
	}
	return text
}
