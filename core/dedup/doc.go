// Package dedup distinguishes repeated requests from new ones by the key that their sender
// gave them.
//
//	before, verdict := keys.Begin(sender, key, sha256.Sum256(request), nil)
//	switch verdict {
//	case dedup.Fresh: // act on the request, then
//		keys.Settle(sender, key, outcome) // or Forget, if it may be tried again
//	case dedup.Pending: // the same request is being acted on
//	case dedup.Settled: // answer with before
//	case dedup.Conflict: // refuse: another request has the key
//	}
package dedup
