// Package lru is a cache of bounded size in which new values replace the oldest.
//
//	sent := lru.New(lru.Options[string, Message]{Count: 1000, Age: 5 * time.Minute})
//	sent.Put(key, message)
//	message, ok := sent.Get(key)
//
// Values leave in the order in which they were last put; reading a value does not keep it. Where
// values have owners, those of the owner with the most leave first.
package lru
