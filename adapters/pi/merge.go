package pi

// The reference repeats the whole message in every update, so that the bytes on
// the wire grow with the square of the text. Here an update leaves only while it is
// worth its bytes; what it leaves out comes with the next. At the end of a text of n
// bytes (as it stands in JSON) these have been or will be sent in any case: the
// deltas (n), the snapshot with the last of them (n), text_end with its content and
// its snapshot (2n), message_end, turn_end and agent_end (3n). Updates on the way may
// cost n+flowSpare more, and never more than flowMost. So an answer costs at most 8
// times its text and 40,000 bytes, which are flowSpare and the frames around the
// text; from 64,000 bytes on it costs at most 8 times its text.
//
// Within that, every delta leaves until flowFirst is spent: eight chunks, or 500
// bytes where that is less. Then one leaves when the message has grown by a third,
// and behind flowLong, where the budget nears its end, when it has doubled. It ends
// at about 10 to 20 KB: any later update would have to be taken from the end of the
// message, which needs all there is.
const (
	flowFirst = 11_000
	flowSpare = 36_000
	flowMost  = 60_000
	flowLong  = 4 << 10
	// flowStep is the least growth that is worth an update behind flowFirst.
	flowStep = 64
)

// flow is what the updates of one message have cost.
type flow struct {
	spent int
	last  int // how long the message was at the last update
}

// affords reports whether an update that costs so many bytes is worth it in a
// message of size bytes, and charges it.
func (f *flow) affords(size, cost int) bool {
	spent := f.spent + cost
	if spent > min(size+flowSpare, flowMost) || spent > flowFirst && size-f.last < f.step() {
		return false
	}
	f.spent, f.last = spent, size
	return true
}

// step is by how much the message must grow before the next update.
func (f *flow) step() int {
	if f.last > flowLong {
		return f.last
	}
	return max(flowStep, f.last/3)
}

// partialLimit is up to which size of a message its updates repeat the snapshot
// as assistantMessageEvent.partial too.
const partialLimit = 256
