package pi

import (
	"cmp"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// The thinking levels, in the order in which they are cycled. Clients set none and
// are shown off (facts, section 3.5).
const (
	thinkingNone = "none"
	thinkingOff  = "off"
)

var thinkingLevels = []string{thinkingOff, "low", "medium", "high", "xhigh"}

// thinkingLevel is the level as clients are shown it.
func (ss *session) thinkingLevel() string { return cmp.Or(ss.thinking, thinkingOff) }

func setThinking(_ *Server, x *execution) outcome {
	level, _ := x.text("level")
	if level == thinkingNone {
		level = thinkingOff
	}
	x.on.think(level)
	return outcome{}
}

// cycleThinking moves to the next level, and from the last to the first. No agent is
// without levels: what it makes of one is its own affair.
func cycleThinking(_ *Server, x *execution) outcome {
	at := slices.Index(thinkingLevels, x.on.thinkingLevel())
	level := thinkingLevels[(at+1)%len(thinkingLevels)]
	x.on.think(level)
	return outcome{data: encode(map[string]string{"level": level})}
}

// think sets the level and tells the subscribers when it is another.
func (ss *session) think(level string) {
	if ss.thinking == level {
		return
	}
	ss.thinking = level
	var f frames
	f.event(ss.prefix, 96, func(b []byte) []byte {
		return append(appendString(append(b, `{"type":"thinking_level_change","thinkingLevel":`...), level), '}')
	})
	ss.tell(f.list[0])
}

// thinkingContext lets the agent know the level, once somebody has set one.
func (ss *session) thinkingContext(r *core.Request) {
	if ss.thinking != "" {
		r.Context = encode(map[string]string{"thinking_level": ss.thinking})
	}
}
