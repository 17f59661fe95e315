package render

import (
	"encoding/json"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
)

// Task is what a View needs about a task besides its events.
type Task struct {
	Envelope Envelope // of the session that shows the task
	ID       core.TaskID
	// MayDecide reports whether who sees the view may decide on its tool calls; nil is yes.
	MayDecide func() bool
	// ApprovalTimeout is how long a user has to decide an approval.
	ApprovalTimeout time.Duration
	// MaxAttempts is the maximum number of agents that the task is assigned to.
	MaxAttempts int
	// Count counts a folded event, by name; it may be nil.
	Count func(name string)
}

// View renders one task: a run, or one of the turns queued behind it. It starts after the
// user's message, within a turn, and ends with turn_end. All views of a task end with the
// same messages, whatever their Snapshots are and however often they are flushed.
//
// A View is a [core.Sink]. Its methods add frames to the Frames given to [View.Begin] and
// return nil. It is not safe for concurrent use.
type View struct {
	task      Task
	snapshots Snapshots
	out       *Frames // nil to make no frames

	messages []conversation.Message  // completed and not yet taken
	room     [1]conversation.Message // for messages: most views have one
	draft    *draft                  // the incomplete message: &latest, or nil
	latest   draft
	turn     turn
	calls    []*toolCall            // without a result
	waiting  []conversation.Message // until the draft ends
	injected []core.Injected        // not yet answered by the agent

	agent    core.AgentID
	provider string     // the dialect of the agent
	usage    core.Usage // reported between two messages
	hasText  bool
	attempt  int // number of the current retry, or 0
}

// turn is a reply and the results of its tool calls.
type turn struct {
	open    bool
	reply   json.RawMessage
	results []conversation.Message
}

// Begin prepares v to render a task whose turn has begun; v may have rendered another task
// to its end. Without Frames v makes only the messages.
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

// SpeakAs sets the agent of the messages that follow, and its provider, for an answer that
// does not come from the events of a task.
func (v *View) SpeakAs(agent core.AgentID, provider string) {
	v.agent, v.provider = agent, provider
}

// Agent returns the agent that the task is assigned to, or "".
func (v *View) Agent() core.AgentID { return v.agent }

// TakeMessages returns the messages completed since the last call. The slice is
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

// beginDraft returns the draft. If there is none it begins one, in a new turn if the
// current turn has its reply.
func (v *View) beginDraft(at time.Time) *draft {
	if v.draft != nil {
		return v.draft
	}
	v.endRetry(nil)
	if v.turn.reply != nil {
		v.endTurn()
	}
	v.beginTurn()
	v.latest = draft{provider: v.provider, agent: v.agent, at: at.UnixMilli(), usage: v.usage}
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

// grow adds a piece of text or thinking to the draft.
func (v *View) grow(kind blockKind, text string, at time.Time) {
	v.endCalls()
	d := v.beginDraft(at)
	d.grow(v.block(kind), text)
}

// block returns the index of the block for the next piece of the kind. If a message has
// alternated between kinds so often that new blocks are not worth their snapshots, a piece
// continues the last open block of its kind.
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

// Flush adds a delta for each open block that has grown, if the delta is worth its bytes.
func (v *View) Flush() {
	if v.draft == nil || v.out == nil {
		return
	}
	for i := range v.draft.blocks {
		v.delta(i, false)
	}
}

// delta adds a delta of an open block that has grown, if it is worth its bytes or must is
// true.
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

// update adds a message_update about a block; fields, unless nil, appends the additional
// members of this update, about extra bytes.
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

// endDraft completes the draft.
func (v *View) endDraft(stop, problem string) {
	d := v.draft
	v.endBlocks()
	m := conversation.Message{Role: conversation.RoleAssistant, JSON: d.message(stop, problem), Calls: d.calls, Usage: d.usage}
	m.Count(d.rawBytes, d.rawText)
	v.draft, v.latest, v.turn.reply = nil, draft{}, m.JSON
	v.keep(m)
	v.message("end", m.JSON)
	for _, l := range v.waiting {
		v.add(l)
	}
	v.waiting = nil
}

// keep adds a completed message to those that TakeMessages returns.
func (v *View) keep(m conversation.Message) {
	if v.messages == nil {
		v.messages = v.room[:0]
	}
	v.messages = append(v.messages, m)
}

// add adds a complete message. While there is a draft, the message waits.
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

// endCalls ends a draft that has tool calls, and starts the calls: later events belong
// after them.
func (v *View) endCalls() {
	if v.draft == nil || v.draft.calls == 0 {
		return
	}
	v.endDraft(StopTools, "")
	for _, c := range v.calls {
		v.start(c)
	}
}
