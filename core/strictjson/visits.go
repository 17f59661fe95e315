package strictjson

import "sync/atomic"

// visits counts bytes during a call of Visits.
var visits atomic.Pointer[atomic.Int64]

// Visits returns how many bytes of JSON were read while f ran; a byte that was read twice
// counts twice. Tests of codecs use it to bound how often a frame is read. Checking counts
// the whole text, decoding the text of the value. Copying bytes does not count, nor does
// comparing keys to find a member.
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
