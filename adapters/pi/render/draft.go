package render

import (
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// draft is an incomplete message of the assistant. Its text is escaped once, when it
// arrives; deltas and snapshots copy the escaped text.
type draft struct {
	provider string
	agent    core.AgentID
	at       int64
	blocks   []block
	room     [1]block // for blocks: most messages have one
	calls    int
	usage    core.Usage
	size     int    // bytes of all blocks
	rawBytes int    // bytes of text, thinking and calls before escaping
	rawText  int    // bytes of text alone, before escaping
	tail     []byte // the members behind the content of a snapshot, encoded once
	budget   budget // of updates
	// blockCost is the cost of the snapshots at the starts and ends of blocks. It is
	// charged even if this reader gets no snapshots, because the blocks of a message must
	// not depend on the reader.
	blockCost int
}

// The kinds of blocks.
type blockKind uint8

const (
	_ blockKind = iota
	blockText
	blockThinking
	blockCall
)

// name returns the prefix of the names of updates of this kind. It is also the name of the
// member that has the text.
func (k blockKind) name() string {
	return [...]string{"", "text", "thinking", "toolcall"}[k]
}

// block is one part of a message's content.
type block struct {
	kind blockKind
	// body is the escaped text, or the whole encoded block of a tool call.
	body []byte
	sent int // bytes of body that were sent in deltas
	open bool
}

// appendTo appends the block as a member of content.
func (b *block) appendTo(dst []byte) []byte {
	if b.kind == blockCall {
		return append(dst, b.body...)
	}
	name := b.kind.name()
	dst = append(append(append(dst, `{"type":"`...), name...), `","`...)
	dst = append(append(append(dst, name...), `":"`...), b.body...)
	return append(dst, '"', '}')
}

// The stop reasons of a message of the assistant (facts, section 5).
const (
	StopDone    = "stop"
	StopLength  = "length"
	StopTools   = "toolUse"
	StopError   = "error"
	StopAborted = "aborted"
)

const (
	// updateSize is the approximate size of an update without the content of the message.
	updateSize = 512
	// tailBytes is the approximate size of the tail without the names in it.
	tailBytes = 272
)

// spend adds tokens.
func (d *draft) spend(u core.Usage) { d.usage, d.tail = d.usage.Add(u), nil }

// appendMessage appends a snapshot of the message.
func (d *draft) appendMessage(dst []byte) []byte {
	if d.tail == nil {
		d.tail = d.appendTail(make([]byte, 0, d.tailSize()), StopDone, "")
	}
	return append(d.appendContent(dst), d.tail...)
}

// message returns the completed message.
func (d *draft) message(stop, problem string) []byte {
	if d.tail != nil && stop == StopDone && problem == "" {
		return d.appendMessage(make([]byte, 0, d.contentSize()+len(d.tail)))
	}
	return d.appendTail(d.appendContent(make([]byte, 0, d.contentSize()+d.tailSize()+len(problem))), stop, problem)
}

const draftHead = `{"role":"assistant","content":[`

// contentSize is the approximate size of the message up to its tail.
func (d *draft) contentSize() int {
	return len(draftHead) + d.size + len(d.blocks)*len(`,{"type":"thinking","thinking":""}`)
}

// tailSize is the approximate size of the tail.
func (d *draft) tailSize() int { return tailBytes + len(d.provider) + len(d.agent) }

func (d *draft) appendContent(dst []byte) []byte {
	dst = append(dst, draftHead...)
	for i := range d.blocks {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = d.blocks[i].appendTo(dst)
	}
	return dst
}

func (d *draft) appendTail(dst []byte, stop, problem string) []byte {
	dst = strictjson.AppendString(append(dst, `],"api":"`+conversation.API+`","provider":`...), d.provider)
	dst = strictjson.AppendString(append(dst, `,"model":`...), string(d.agent))
	dst = conversation.AppendUsage(append(dst, `,"usage":`...), d.usage)
	dst = append(append(append(dst, `,"stopReason":"`...), stop...), '"')
	if problem != "" {
		dst = strictjson.AppendString(append(dst, `,"errorMessage":`...), problem)
	}
	return append(strconv.AppendInt(append(dst, `,"timestamp":`...), d.at, 10), '}')
}

// grow appends text to a block.
func (d *draft) grow(i int, text string) {
	b := &d.blocks[i]
	before := len(b.body)
	b.body = strictjson.AppendText(b.body, text)
	d.size += len(b.body) - before
	if d.rawBytes += len(text); b.kind == blockText {
		d.rawText += len(text)
	}
}

// affordsBlock reports whether the updates at the start and the end of a block are worth
// their bytes, and if so charges them.
func (d *draft) affordsBlock() bool {
	cost := 2 * (d.size + updateSize)
	if d.blockCost+cost > blockSpare+d.size/2 {
		return false
	}
	d.blockCost += cost
	return true
}

// blockSpare is what the snapshots of blocks may cost beyond half the size of the message.
const blockSpare = 32 << 10

// lastOpen returns the index of the last open block of the kind, or -1.
func (d *draft) lastOpen(kind blockKind) int {
	for i := len(d.blocks) - 1; i >= 0; i-- {
		if d.blocks[i].open && d.blocks[i].kind == kind {
			return i
		}
	}
	return -1
}
