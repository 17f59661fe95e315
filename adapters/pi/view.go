package pi

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// scene is what a view must know beside the events.
type scene struct {
	prefix []byte // of the events of its session
	task   core.TaskID
	// provider names the dialect of an agent.
	provider func(core.AgentID) string
	// approval is how long a person has to decide.
	approval time.Duration
	// attempts is how often a task is given to an agent at most.
	attempts int
	// count counts what was folded; nil for nobody.
	count func(string)
}

// view tells one task as AgentSession events: a run, or one of the turns queued
// behind it. It begins behind the user's message and ends with turn_end. Views of
// the same task end with the same messages, however they are read.
//
// A view is a [core.Sink]. Its methods add frames to out and return nil.
type view struct {
	scene
	told Snapshots
	out  *frames // nil of one that is unheard

	messages []conversation.Message
	few      [1]conversation.Message // of those, in most views
	draft    *draft                  // that grows: latest, or nil
	latest   draft
	turn     turn
	calls    []*toolCall            // without a result
	later    []conversation.Message // wait for the draft to end
	injected []core.Injected

	agent   core.AgentID
	usage   core.Usage // that came between two messages
	spoke   bool
	attempt int // that failed and is being made good, or 0
}

// turn is one reply and what its tools came to.
type turn struct {
	open    bool
	reply   json.RawMessage
	results []conversation.Message
}

// newView returns a view of a task whose turn has begun.
func newView(s scene, told Snapshots) *view {
	v := &view{}
	if told == unheard {
		return v.begins(nil, s, told)
	}
	return v.begins(&frames{}, s, told)
}

// begins makes v, which may have told another task to its end, a view that adds to out.
func (v *view) begins(out *frames, s scene, told Snapshots) *view {
	if told == 0 {
		told = SnapshotsAll
	}
	if s.count == nil {
		s.count = func(string) {}
	}
	*v = view{scene: s, told: told, out: out, turn: turn{open: true}}
	return v
}

// take returns the frames so far and forgets them. What grew since the last frame
// is told if it is worth it.
func (v *view) take() [][]byte {
	v.flush()
	if v.out == nil {
		return nil
	}
	out := v.out.list
	v.out.list = nil // what room is left serves the next
	return out
}

// begin opens a draft, in a new turn when the last has its reply.
func (v *view) begin(at time.Time) *draft {
	if v.draft != nil {
		return v.draft
	}
	v.recovered(nil)
	if v.turn.reply != nil {
		v.endTurn()
	}
	v.beginTurn()
	v.latest = draft{provider: v.provider(v.agent), agent: v.agent, at: at.UnixMilli(), usage: v.usage}
	v.draft = &v.latest
	v.draft.blocks = v.draft.first[:0]
	v.usage = core.Usage{}
	v.out.event(v.prefix, overhead, func(b []byte) []byte {
		return append(v.draft.appendMessage(append(b, `{"type":"message_start","message":`...)), '}')
	})
	return v.draft
}

func (v *view) beginTurn() {
	if !v.turn.open {
		v.turn.open = true
		v.out.plain(v.prefix, turnStart)
	}
}

func (v *view) endTurn() {
	v.out.turnEnd(v.prefix, v.turn.reply, v.turn.results)
	v.turn = turn{}
}

// say adds a piece of text or thinking to the message.
func (v *view) say(kind blockKind, text string, at time.Time) {
	v.settle()
	d := v.begin(at)
	d.grow(v.block(kind), text)
}

// block returns the block that goes on with the kind. Once a message has changed
// its kind so often that new blocks are not worth their snapshots, text goes on
// where text was, and thinking where thinking was.
func (v *view) block(kind blockKind) int {
	d := v.draft
	n := len(d.blocks)
	if n > 0 && d.blocks[n-1].open && d.blocks[n-1].kind == kind {
		return n - 1
	}
	worth := d.affordsShape(2)
	if i := d.open(kind); i >= 0 && !worth {
		return i
	}
	if worth {
		v.endBlocks()
	}
	d.blocks = append(d.blocks, block{kind: kind, open: true})
	v.update(kind.name()+"_start", n, 0, nil)
	return n
}

// flush tells what the open blocks have grown by, if it is worth it.
func (v *view) flush() {
	if v.draft == nil || v.out == nil {
		return
	}
	for i := range v.draft.blocks {
		v.delta(i, false)
	}
}

// delta tells what a block has grown by, if that is worth it or a must.
func (v *view) delta(i int, must bool) {
	d := v.draft
	b := &d.blocks[i]
	if !b.open || b.told == len(b.body) {
		return
	}
	if v.told == SnapshotsAll {
		cost := d.size + overhead
		if d.size <= partialLimit {
			cost *= 2
		}
		if !d.flow.affords(d.size, cost) && !must {
			return
		}
	}
	fresh := b.body[b.told:]
	b.told = len(b.body)
	v.update(b.kind.name()+"_delta", i, len(fresh), func(dst []byte) []byte {
		dst = append(dst, `,"delta":"`...)
		return append(append(dst, fresh...), '"')
	})
}

// endBlocks ends every open block.
func (v *view) endBlocks() {
	d := v.draft
	for i := range d.blocks {
		b := &d.blocks[i]
		if !b.open {
			continue
		}
		v.delta(i, true)
		b.open = false
		v.update(b.kind.name()+"_end", i, len(b.body), func(dst []byte) []byte {
			dst = append(dst, `,"content":"`...)
			return append(append(dst, b.body...), '"')
		})
	}
}

// update emits a message_update about a block; fields appends what it has of its
// own, about extra bytes.
func (v *view) update(name string, i, extra int, fields func([]byte) []byte) {
	room := overhead/2 + extra
	if v.told == SnapshotsAll {
		room += 2*overhead + v.draft.size
	}
	v.out.event(v.prefix, room, func(b []byte) []byte {
		b = append(append(b, `{"type":"message_update","assistantMessageEvent":{"type":"`...), name...)
		b = strconv.AppendInt(append(b, `","contentIndex":`...), int64(i), 10)
		if fields != nil {
			b = fields(b)
		}
		if v.told == SnapshotsAll {
			if v.draft.size <= partialLimit {
				b = v.draft.appendMessage(append(b, `,"partial":`...))
			}
			b = v.draft.appendMessage(append(b, `},"message":`...))
			return append(b, '}')
		}
		return append(b, '}', '}')
	})
}

// close ends the draft.
func (v *view) close(stop, problem string) {
	d := v.draft
	v.endBlocks()
	m := conversation.Message{Role: conversation.RoleAssistant, JSON: d.message(stop, problem), Calls: d.calls, Usage: d.usage}
	m.Count(d.said, d.words)
	v.draft, v.latest, v.turn.reply = nil, draft{}, m.JSON
	v.keep(m)
	v.out.message(v.prefix, "end", m.JSON)
	for _, l := range v.later {
		v.speak(l)
	}
	v.later = nil
}

// keep adds a message that has ended.
func (v *view) keep(m conversation.Message) {
	if v.messages == nil {
		v.messages = v.few[:0]
	}
	v.messages = append(v.messages, m)
}

// speak adds a message that comes whole; while a draft is open it waits.
func (v *view) speak(m conversation.Message) {
	if v.draft != nil {
		v.later = append(v.later, m)
		return
	}
	v.keep(m)
	if m.Role == conversation.RoleTool {
		v.turn.results = append(v.turn.results, m)
	}
	v.out.spoken(v.prefix, m)
}

// settle closes a draft that calls tools: what comes now comes after the calls.
func (v *view) settle() {
	if v.draft == nil || v.draft.calls == 0 {
		return
	}
	v.close(stopTools, "")
	for _, c := range v.calls {
		v.start(c)
	}
}
