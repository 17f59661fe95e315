package client

import (
	"context"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// maxOutside bounds what is kept of the updates between two turns, in bytes.
const maxOutside = 64 << 10

// outside is what the agent says of a session while no turn runs.
type outside struct {
	updates []wire.Update // the latest of each kind, and every notice
	kept    int           // their bytes
	late    int           // bytes of updates that came too late for their turn
	// replayed has a token when the agent has repeated something of the conversation; nil while it
	// does not.
	replayed chan struct{}
}

// keep keeps an update that came between two turns, for the next one: the latest of each kind, such
// as the commands and the mode. It reports whether the update is kept or of no use: what is replayed
// was told before, and pieces of an answer belong to a turn.
func (s *session) keep(u wire.Update) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := &s.outside
	if o.replayed != nil {
		fifo.Signal(o.replayed)
	}
	if u.IsChunk() || u.Kind == wire.UpdateToolCall || u.Kind == wire.UpdateToolCallUpdate || u.Kind == wire.UpdatePlan {
		if o.replayed == nil && !isModeText(&u) {
			o.late += len(u.Whole.Raw())
			return false
		}
		return true
	}
	for i, old := range o.updates {
		if old.Kind == u.Kind && u.Kind != wire.UpdateNotice {
			o.kept -= old.Whole.Memory()
			o.updates = append(o.updates[:i], o.updates[i+1:]...)
			break
		}
	}
	if o.kept+u.Whole.Memory() > maxOutside {
		return false
	}
	o.updates, o.kept = append(o.updates, u), o.kept+u.Whole.Memory()
	return true
}

// takeOutside returns what keep has kept, and how many bytes came too late for the turn before.
func (s *session) takeOutside() (all []wire.Update, late int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, late = s.outside.updates, s.outside.late
	s.outside = outside{replayed: s.outside.replayed}
	return all, late
}

// replays says that the agent repeats the conversation until the returned function is called. What
// it returns has a token whenever something was repeated.
func (s *session) replays() (repeated <-chan struct{}, stop func()) {
	set := func(c chan struct{}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.outside.replayed = c
	}
	c := make(chan struct{}, 1)
	set(c)
	return c, func() { set(nil) }
}

// Gemini CLI answers session/load before it has repeated the conversation. So what comes before the
// agent has said nothing for a while is repeated.
const (
	replayQuiet = 500 * time.Millisecond
	replayMost  = 30 * time.Second
)

// replayed waits until the agent has repeated the conversation. The error is the cause of ctx.
func replayed(ctx context.Context, repeated <-chan struct{}) error {
	most, quiet := time.NewTimer(replayMost), time.NewTimer(replayQuiet)
	defer most.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-repeated:
			quiet.Reset(replayQuiet)
		case <-quiet.C:
			return nil
		case <-most.C:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// isModeText reports whether a chunk of text is no text of the model: so Gemini CLI tells of
// another mode.
func isModeText(u *wire.Update) bool {
	text, is := u.Text()
	mode, is2 := strings.CutPrefix(string(text), "[MODE_UPDATE] ")
	return is && is2 && u.Kind == wire.UpdateAgentMessageChunk && mode != "" && !strings.ContainsAny(mode, " \n")
}
