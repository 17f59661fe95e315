package render

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// Task is what a View has to know of a task besides its events.
type Task struct {
	Envelope Envelope // of the session that shows the task
	ID       core.TaskID
	// Provider names the dialect of an agent.
	Provider func(core.AgentID) string
	// ApprovalTimeout is how long a person has to decide an approval.
	ApprovalTimeout time.Duration
	// MaxAttempts is how many agents are asked in turn at most.
	MaxAttempts int
	// Count counts what was folded, by name; it may be nil.
	Count func(name string)
}

// View renders one task: a run, or one of the turns queued behind it. It begins behind
// the user's message, within a turn, and ends with turn_end. Views of the same task end
// with the same messages, whatever their Snapshots are and however often they are
// flushed.
//
// A View is a [core.Sink]. Its methods add frames to the Frames that it was begun with,
// and return nil. It is not safe for concurrent use.
type View struct {
	task      Task
	snapshots Snapshots
	out       *Frames // nil: no frames are made

	messages []conversation.Message  // that have ended and were not taken yet
	room     [1]conversation.Message // for messages: most views have one
	draft    *draft                  // the message that grows: &latest, or nil
	latest   draft
	turn     turn
	calls    []*toolCall            // without a result
	waiting  []conversation.Message // for the draft to end
	injected []core.Injected        // that the agent has not answered

	agent   core.AgentID
	usage   core.Usage // reported between two messages
	hasText bool
	attempt int // the retry under way, or 0
}

// turn is a reply and the results of its tool calls.
type turn struct {
	open    bool
	reply   json.RawMessage
	results []conversation.Message
}

// Begin makes v, which may have rendered another task to its end, a View of a task whose
// turn has begun. Without Frames it makes the messages alone.
func (v *View) Begin(t Task, out *Frames, how Snapshots) {
	switch {
	case out == nil:
		how = SnapshotsNone
	case how == 0:
		how = SnapshotsAll
	}
	if t.Count == nil {
		t.Count = func(string) {}
	}
	*v = View{task: t, out: out, snapshots: how, turn: turn{open: true}}
}

// SpeakAs names the agent whose answer follows, and its provider, in place of the events
// of a task.
func (v *View) SpeakAs(agent core.AgentID, provider string) {
	v.agent, v.task.Provider = agent, func(core.AgentID) string { return provider }
}

// Agent returns the agent that the task is assigned to, or "".
func (v *View) Agent() core.AgentID { return v.agent }

// TakeMessages returns the messages that have ended since the last call. The slice is
// valid until the next event.
func (v *View) TakeMessages() []conversation.Message {
	all := v.messages
	v.messages = nil
	return all
}

// event adds an event whose JSON, of about size bytes, fill appends.
func (v *View) event(size int, fill func(dst []byte) []byte) {
	if v.out == nil {
		return
	}
	e := v.task.Envelope
	v.out.add(len(e)+size+1, func(b []byte) []byte { return append(fill(append(b, e...)), '}') })
}

// message adds the message_start or message_end of an encoded message.
func (v *View) message(phase string, json []byte) {
	v.event(len(json)+eventSize, func(b []byte) []byte { return appendMessageEvent(b, phase, json) })
}

// beginDraft returns the draft. Without one it begins one, in a new turn if this turn
// has its reply.
func (v *View) beginDraft(at time.Time) *draft {
	if v.draft != nil {
		return v.draft
	}
	v.endRetry(nil)
	if v.turn.reply != nil {
		v.endTurn()
	}
	v.beginTurn()
	v.latest = draft{provider: v.task.Provider(v.agent), agent: v.agent, at: at.UnixMilli(), usage: v.usage}
	v.draft = &v.latest
	v.draft.blocks = v.draft.room[:0]
	v.usage = core.Usage{}
	v.event(updateSize, func(b []byte) []byte {
		return append(v.draft.appendMessage(append(b, `{"type":"message_start","message":`...)), '}')
	})
	return v.draft
}

func (v *View) beginTurn() {
	if !v.turn.open {
		v.turn.open = true
		v.event(eventSize, appendTurnStart)
	}
}

func (v *View) endTurn() {
	t := v.turn
	v.event(len(t.reply)+conversation.JSONSize(t.results)+eventSize, func(b []byte) []byte { return appendTurnEnd(b, t.reply, t.results) })
	v.turn = turn{}
}

// say adds a piece of text or thinking to the message.
func (v *View) say(kind blockKind, text string, at time.Time) {
	v.endCalls()
	d := v.beginDraft(at)
	d.grow(v.block(kind), text)
}

// block returns the index of the block that the next piece of the kind belongs to. Once
// a message has changed its kind so often that new blocks are not worth their
// snapshots, text continues the last block of text, and thinking that of thinking.
func (v *View) block(kind blockKind) int {
	d := v.draft
	n := len(d.blocks)
	if n > 0 && d.blocks[n-1].open && d.blocks[n-1].kind == kind {
		return n - 1
	}
	worth := d.affordsBlock()
	if i := d.lastOpen(kind); i >= 0 && !worth {
		return i
	}
	if worth {
		v.endBlocks()
	}
	d.blocks = append(d.blocks, block{kind: kind, open: true})
	v.update(kind.name()+"_start", n, 0, nil)
	return n
}

// Flush adds what the open blocks have grown by, if that is worth its bytes.
func (v *View) Flush() {
	if v.draft == nil || v.out == nil {
		return
	}
	for i := range v.draft.blocks {
		v.delta(i, false)
	}
}

// delta adds what a block has grown by, if that is worth its bytes or has to be sent.
func (v *View) delta(i int, must bool) {
	d := v.draft
	b := &d.blocks[i]
	if !b.open || b.sent == len(b.body) {
		return
	}
	if v.snapshots == SnapshotsAll {
		cost := d.size + updateSize
		if d.size <= partialLimit {
			cost *= 2
		}
		if !d.budget.affords(d.size, cost) && !must {
			return
		}
	}
	fresh := b.body[b.sent:]
	b.sent = len(b.body)
	v.update(b.kind.name()+"_delta", i, len(fresh), func(dst []byte) []byte {
		dst = append(dst, `,"delta":"`...)
		return append(append(dst, fresh...), '"')
	})
}

// endBlocks ends every open block.
func (v *View) endBlocks() {
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

// update adds a message_update about a block; fields, unless it is nil, appends the
// members that only this update has, about extra bytes.
func (v *View) update(name string, i, extra int, fields func([]byte) []byte) {
	size := updateSize/2 + extra
	if v.snapshots == SnapshotsAll {
		size += 2*updateSize + v.draft.size
	}
	v.event(size, func(b []byte) []byte {
		b = append(append(b, `{"type":"message_update","assistantMessageEvent":{"type":"`...), name...)
		b = strconv.AppendInt(append(b, `","contentIndex":`...), int64(i), 10)
		if fields != nil {
			b = fields(b)
		}
		if v.snapshots == SnapshotsAll {
			if v.draft.size <= partialLimit {
				b = v.draft.appendMessage(append(b, `,"partial":`...))
			}
			b = v.draft.appendMessage(append(b, `},"message":`...))
			return append(b, '}')
		}
		return append(b, '}', '}')
	})
}

// endDraft ends the message that grows.
func (v *View) endDraft(stop, problem string) {
	d := v.draft
	v.endBlocks()
	m := conversation.Message{Role: conversation.RoleAssistant, JSON: d.message(stop, problem), Calls: d.calls, Usage: d.usage}
	m.Count(d.said, d.words)
	v.draft, v.latest, v.turn.reply = nil, draft{}, m.JSON
	v.keep(m)
	v.message("end", m.JSON)
	for _, l := range v.waiting {
		v.add(l)
	}
	v.waiting = nil
}

// keep keeps a message that has ended.
func (v *View) keep(m conversation.Message) {
	if v.messages == nil {
		v.messages = v.room[:0]
	}
	v.messages = append(v.messages, m)
}

// add adds a message that does not grow; while a draft does, it waits.
func (v *View) add(m conversation.Message) {
	if v.draft != nil {
		v.waiting = append(v.waiting, m)
		return
	}
	v.keep(m)
	if m.Role == conversation.RoleTool {
		v.turn.results = append(v.turn.results, m)
	}
	v.message("start", m.JSON)
	v.message("end", m.JSON)
}

// endCalls ends a draft that calls tools, and begins these: what comes next belongs
// behind the calls.
func (v *View) endCalls() {
	if v.draft == nil || v.draft.calls == 0 {
		return
	}
	v.endDraft(StopTools, "")
	for _, c := range v.calls {
		v.start(c)
	}
}
