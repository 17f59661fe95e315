package render

// The reference implementation repeats the whole message in every update, so the bytes on
// the wire grow with the square of the text. Here an update is sent only if the budget
// affords it; the next update includes the text of a skipped one. A text of n bytes
// (encoded in JSON) always costs the deltas (n), the snapshot with the last delta (n),
// text_end with its content and its snapshot (2n), and message_end, turn_end and agent_end
// (3n). Earlier updates may add n+budgetSpare, but at most budgetMost. So an answer costs
// at most 8 times its text plus 40,000 bytes for budgetSpare and the frames around the
// text; from 64,000 bytes on it costs at most 8 times its text.
//
// Every delta is sent until budgetFirst is spent: eight chunks, or 500 bytes if that is
// less. After that an update is sent when the message has grown by a third, and beyond
// budgetLong when it has doubled. The budget is spent at about 10 to 20 KB. The rest is
// reserved for the frames that end the message.
const (
	budgetFirst = 11_000
	budgetSpare = 36_000
	budgetMost  = 60_000
	budgetLong  = 4 << 10
	// budgetStep is the minimum growth between updates beyond budgetFirst.
	budgetStep = 64
)

// budget tracks the cost of the updates of one message.
type budget struct {
	spent int
	last  int // the size of the message at the last update
}

// affords reports whether the budget of a message of size bytes allows an update of cost
// bytes, and if so charges it.
func (b *budget) affords(size, cost int) bool {
	spent := b.spent + cost
	if spent > min(size+budgetSpare, budgetMost) || spent > budgetFirst && size-b.last < b.step() {
		return false
	}
	b.spent, b.last = spent, size
	return true
}

// step returns by how much the message must grow before the next update.
func (b *budget) step() int {
	if b.last > budgetLong {
		return b.last
	}
	return max(budgetStep, b.last/3)
}

// partialLimit is the maximum size of a message whose updates also repeat the snapshot as
// assistantMessageEvent.partial.
const partialLimit = 256
