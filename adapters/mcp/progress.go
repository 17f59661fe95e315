package mcp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
)

const (
	// progressEvery is the least time between two progress notifications of a call. The first progressBurst of
	// a tool of a pack, which may be done sooner, come at once.
	progressEvery = time.Second
	progressBurst = 3
)

// progress makes the progress notifications of a running tool: at once, whenever there is
// something new to say, though not more often than progressEvery but for the first few of a tool of a pack,
// as a sign of life after some silence, and before the result. A nil progress has none.
type progress struct {
	token   json.RawMessage // as the client sent it
	tool    string
	began   time.Time
	silence time.Duration
	sent    uint64 // the number of the last one
	count   int
	last    time.Time
	told    int // what was said until then
}

// due returns when the next notification of the run is due if nothing else happens.
func (p *progress) due(r *run) time.Time {
	switch {
	case p == nil:
		return time.Time{}
	case p.sent == 0:
		return p.began
	case r.said != p.told:
		return p.last.Add(min(p.silence, p.pause(r)))
	default:
		return p.last.Add(p.silence)
	}
}

// isDue reports whether a notification is to be sent now.
func (p *progress) isDue(r *run, now time.Time) bool { return p != nil && !now.Before(p.due(r)) }

// pause returns how long there is none after the last one.
func (p *progress) pause(r *run) time.Duration {
	if r.task == nil && p.count < progressBurst {
		return 0
	}
	return progressEvery
}

// lacks reports whether the client was not told what the run said last. The result repeats the words of
// an answer.
func (p *progress) lacks(r *run) bool { return p != nil && r.said != p.told && !r.isAnswer }

// next returns the next notification: the number of events so far, but at least one more than
// before, and the latest words. There is no total.
func (p *progress) next(r *run, now time.Time) []byte {
	p.sent, p.last, p.told = max(p.sent+1, r.events), now, r.said
	p.count++
	return notification(wire.NoteProgress, struct {
		Token    json.RawMessage `json:"progressToken"`
		Progress uint64          `json:"progress"`
		Message  string          `json:"message"`
	}{p.token, p.sent, cmp.Or(r.words(), fmt.Sprintf("%s has been running for %s", p.tool, now.Sub(p.began).Round(time.Second)))})
}
