package pi

import "math"

// The reference repeats the whole message in every update, so that the bytes on
// the wire grow with the square of the text. Here an update leaves only while it is
// worth its bytes; what it leaves out comes with the next. At the end of a text of n
// bytes these have been or will be sent in any case: the deltas (n), the snapshot
// with the last of them (n), text_end with its content and its snapshot (2n),
// message_end, turn_end and agent_end (3n). Updates on the way may cost
//
//	flowBase + flowRate * ln(1 + n/flowKnee)
//
// more: enough for every delta of the first hundreds of bytes, one update every 200
// bytes at 2 KiB, every 600 at 4 KiB and every 2 KiB at 8 KiB, and less than n from
// 250 KB on.
const (
	flowBase = 16 << 10
	flowRate = 32 << 10
	flowKnee = 256
)

// flow is what the updates of one message have cost.
type flow struct{ spent int }

// affords reports whether an update that costs so many bytes is worth it in a
// message of size bytes, and charges it.
func (f *flow) affords(size, cost int) bool {
	if float64(f.spent+cost) > flowBase+flowRate*math.Log1p(float64(size)/flowKnee) {
		return false
	}
	f.spent += cost
	return true
}

// partialLimit is up to which size of a message its updates repeat the snapshot
// as assistantMessageEvent.partial too.
const partialLimit = 1 << 10
