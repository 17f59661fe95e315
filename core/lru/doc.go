// Package lru is a cache of bounded size in which new values replace the oldest.
//
//	sent := lru.New(lru.Options[string, Message]{Count: 1000, Age: 5 * time.Minute})
//	sent.Put(key, message)
//	message, ok := sent.Get(key)
//
// Values leave in the order in which they were last put; reading a value does not keep it. Where
// values have owners, those of the owner with the most leave first.
//
// [Keys] distinguish repeated requests from new ones by the key that their sender gave them.
//
//	before, verdict := keys.Begin(sender, key, sha256.Sum256(request), nil)
//	switch verdict {
//	case lru.Fresh: // act on the request, then
//		keys.Settle(sender, key, outcome) // or Forget, if it may be tried again
//	case lru.Pending: // the same request is being acted on
//	case lru.Settled: // answer with before
//	case lru.Conflict: // refuse: another request has the key
//	}
package lru
