package render

// The reference repeats the whole message in every update, so that the bytes on the wire
// grow with the square of the text. Here an update is sent only while it is worth its
// bytes; what it leaves out comes with the next. At the end of a text of n bytes (as it
// is encoded in JSON) these have been sent or will be in any case: the deltas (n), the
// snapshot with the last of them (n), text_end with its content and its snapshot (2n),
// message_end, turn_end and agent_end (3n). Updates on the way may cost n+budgetSpare
// more, and never more than budgetMost. So an answer costs at most 8 times its text and
// 40,000 bytes, which are budgetSpare and the frames around the text; from 64,000 bytes
// on it costs at most 8 times its text.
//
// Within that, every delta is sent until budgetFirst is spent: eight chunks, or 500 bytes
// if that is less. Then one is sent when the message has grown by a third, and beyond
// budgetLong, where the budget nears its end, when it has doubled. The budget ends at
// about 10 to 20 KB: any later update would have to be taken from the end of the message,
// which needs all there is.
const (
	budgetFirst = 11_000
	budgetSpare = 36_000
	budgetMost  = 60_000
	budgetLong  = 4 << 10
	// budgetStep is the least growth that is worth an update beyond budgetFirst.
	budgetStep = 64
)

// budget is what the updates of one message have cost.
type budget struct {
	spent int
	last  int // the size of the message at the last update
}

// affords reports whether an update that costs so many bytes is worth it in a message of
// size bytes, and charges it.
func (b *budget) affords(size, cost int) bool {
	spent := b.spent + cost
	if spent > min(size+budgetSpare, budgetMost) || spent > budgetFirst && size-b.last < b.step() {
		return false
	}
	b.spent, b.last = spent, size
	return true
}

// step is by how much the message has to grow before the next update.
func (b *budget) step() int {
	if b.last > budgetLong {
		return b.last
	}
	return max(budgetStep, b.last/3)
}

// partialLimit is up to which size of a message its updates repeat the snapshot as
// assistantMessageEvent.partial too.
const partialLimit = 256
