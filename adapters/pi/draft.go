package pi

import (
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// draft is an assistant's message while it grows. Its text is escaped once, when it
// comes in; deltas and snapshots are copies of that.
type draft struct {
	provider string
	agent    core.AgentID
	at       int64
	blocks   []block
	first    [1]block // most have no other
	calls    int
	usage    core.Usage
	size     int    // bytes of all blocks
	said     int    // bytes of text, thinking and calls, before they were escaped
	words    int    // of those the text alone
	tail     []byte // what stands behind the content while the message grows, encoded once
	flow     flow
	// shape is what the beginnings and ends of blocks would have cost in snapshots,
	// whether or not this reader is told any: the blocks of a message must not
	// depend on who reads it.
	shape int
}

// The kinds of blocks.
type blockKind uint8

const (
	_ blockKind = iota
	blockText
	blockThinking
	blockCall
)

// name is how the kind begins the names of its updates, and what its text is called.
func (k blockKind) name() string {
	return [...]string{"", "text", "thinking", "toolcall"}[k]
}

// block is one part of a message's content.
type block struct {
	kind blockKind
	// body is the escaped text, or the whole block of a tool call.
	body []byte
	told int // how much of body went out in deltas
	open bool
}

// appendBlock appends the block as it stands in content.
func (b *block) appendBlock(dst []byte) []byte {
	if b.kind == blockCall {
		return append(dst, b.body...)
	}
	name := b.kind.name()
	dst = append(append(append(dst, `{"type":"`...), name...), `","`...)
	dst = append(append(append(dst, name...), `":"`...), b.body...)
	return append(dst, '"', '}')
}

// The reasons for which a message stops (facts, section 5).
const (
	stopDone    = "stop"
	stopLength  = "length"
	stopTools   = "toolUse"
	stopError   = "error"
	stopAborted = "aborted"
)

const (
	// overhead is about what an update costs beside the content of the message.
	overhead = 512
	// tailSize is about what stands behind the content, without its names.
	tailSize = 272
)

// spend adds tokens.
func (d *draft) spend(u core.Usage) { d.usage, d.tail = d.usage.Add(u), nil }

// appendMessage appends the message as far as it went.
func (d *draft) appendMessage(dst []byte) []byte {
	if d.tail == nil {
		d.tail = d.appendTail(make([]byte, 0, d.tailRoom()), stopDone, "")
	}
	return append(d.appendContent(dst), d.tail...)
}

// message returns the message as it ends.
func (d *draft) message(stop, problem string) []byte {
	if d.tail != nil && stop == stopDone && problem == "" {
		return d.appendMessage(make([]byte, 0, d.room()+len(d.tail)))
	}
	return d.appendTail(d.appendContent(make([]byte, 0, d.room()+d.tailRoom()+len(problem))), stop, problem)
}

const draftHead = `{"role":"assistant","content":[`

// room is how many bytes the message takes up to its tail.
func (d *draft) room() int {
	return len(draftHead) + d.size + len(d.blocks)*len(`,{"type":"thinking","thinking":""}`)
}

// tailRoom is how many bytes what stands behind the content takes.
func (d *draft) tailRoom() int { return tailSize + len(d.provider) + len(d.agent) }

func (d *draft) appendContent(dst []byte) []byte {
	dst = append(dst, draftHead...)
	for i := range d.blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.blocks[i].appendBlock(dst)
	}
	return dst
}

func (d *draft) appendTail(dst []byte, stop, problem string) []byte {
	dst = wire.AppendString(append(dst, `],"api":"`+conversation.API+`","provider":`...), d.provider)
	dst = wire.AppendString(append(dst, `,"model":`...), string(d.agent))
	dst = conversation.AppendUsage(append(dst, `,"usage":`...), d.usage)
	dst = append(append(append(dst, `,"stopReason":"`...), stop...), '"')
	if problem != "" {
		dst = wire.AppendString(append(dst, `,"errorMessage":`...), problem)
	}
	return append(strconv.AppendInt(append(dst, `,"timestamp":`...), d.at, 10), '}')
}

// grow appends text to a block.
func (d *draft) grow(i int, text string) {
	b := &d.blocks[i]
	before := len(b.body)
	b.body = wire.AppendText(b.body, text)
	d.size += len(b.body) - before
	if d.said += len(text); b.kind == blockText {
		d.words += len(text)
	}
}

// affordsShape reports whether n more updates for the sake of blocks are worth
// their bytes, and charges them.
func (d *draft) affordsShape(n int) bool {
	cost := n * (d.size + overhead)
	if d.shape+cost > shapeBase+d.size/2 {
		return false
	}
	d.shape += cost
	return true
}

// shapeBase is what blocks may cost in snapshots before their share of the text.
const shapeBase = 32 << 10

// open returns the open block of the kind that was added last, or -1.
func (d *draft) open(kind blockKind) int {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].open && d.blocks[i].kind == kind {
			return i
		}
	}
	return -1
}
