package coven

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// suggestions is how many numbers are tried before an id gets an ending that nobody
// has.
const suggestions = 99

// freeID is an id like the given one that can be one and that nobody has now. It is
// not kept for whoever is told of it.
func (s *session) freeID(id core.AgentID) core.AgentID {
	like := presentable(id)
	for n := range suggestions + 1 {
		free := core.AgentID(like)
		if n > 0 {
			free = core.AgentID(fmt.Sprintf("%s-%d", like, n))
		}
		if _, taken := s.hub.Agent(free); !taken && core.CheckAgentID(free) == nil {
			return free
		}
	}
	return core.AgentID(like + "-" + instanceID())
}

// presentable is what is left of an id without what no id may have, and with room
// for an ending.
func presentable(id core.AgentID) string {
	text := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return -1
		}
		return r
	}, wire.CutText(string(id), core.MaxIDBytes-len("-")-instanceLetters))
	text = strings.TrimSpace(text)
	if core.CheckAgentID(core.AgentID(text)) != nil {
		return "agent" // it means something else in an address, or nothing is left
	}
	return text
}
