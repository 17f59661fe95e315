package strictjson

import "sync/atomic"

// visits counts bytes while somebody wants to know.
var visits atomic.Pointer[atomic.Int64]

// Visits returns how many bytes of JSON were looked at while f ran, those that were
// looked at twice counted twice: for tests, which hold by it how often a frame is
// read. To check a text counts all of it, to decode a value what it says. Bytes that are
// only copied do not count, nor do keys that are compared to find a member.
func Visits(f func()) int64 {
	var n atomic.Int64
	visits.Store(&n)
	defer visits.Store(nil)
	f()
	return n.Load()
}

func visit(bytes int) {
	if n := visits.Load(); n != nil {
		n.Add(int64(bytes))
	}
}
