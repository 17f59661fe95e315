package pi

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
)

// The thinking levels, in the order in which they are cycled. Clients set none and
// are shown off (facts, section 3.5).
const (
	thinkingNone = "none"
)

var thinkingLevels = []string{conversation.ThinkingOff, "low", "medium", "high", "xhigh"}

func setThinking(s *Server, x *request) command.Outcome {
	level, _ := x.Text("level")
	if level == thinkingNone {
		level = conversation.ThinkingOff
	}
	x.on.setThinkingLevel(level)
	return command.Outcome{}
}

// cycleThinking moves to the next level, and from the last to the first. No agent is
// without levels: what it makes of one is its own affair.
func cycleThinking(s *Server, x *request) command.Outcome {
	at := slices.Index(thinkingLevels, x.on.tree.ThinkingLevel())
	level := thinkingLevels[(at+1)%len(thinkingLevels)]
	var before struct{ Level string }
	if x.DecodePrior(&before) {
		level = before.Level
	}
	x.on.setThinkingLevel(level)
	return command.Outcome{Data: wire.Encode(map[string]string{"level": level})}
}

// setThinkingLevel sets the level and tells the subscribers when it is another.
func (ss *session) setThinkingLevel(level string) {
	if ss.tree.Level == level {
		return
	}
	ss.add(sessionfile.ThinkingLevelChange{ThinkingLevel: level})
	ss.readers.tell(ss.envelope.ThinkingLevel(level))
}

// thinkingContext lets the agent know the level, once somebody has set one.
func thinkingContext(level string) json.RawMessage {
	if level == "" {
		return nil
	}
	return wire.Encode(map[string]string{"thinking_level": level})
}
