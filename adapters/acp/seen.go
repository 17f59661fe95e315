package acp

import (
	"hash/maphash"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core/dedup"
)

// maxSeenIDs bounds the ids that are known to have been seen, as in the released code
// (ACP wire facts, section 7).
const maxSeenIDs = 100_000

// seenIDs remembers the ids of envelopes that were acted on, so that none is acted
// on twice. It is safe for concurrent use.
type seenIDs struct {
	seed maphash.Seed
	keep time.Duration

	mu sync.Mutex
	// ids has which session saw an envelope, and a digest of what it says. The keys are
	// hashes: an id may be long.
	ids *dedup.Memory[uint64, uint64, uint64]
}

func newSeenIDs(keep time.Duration) *seenIDs {
	ids := dedup.New[uint64, uint64](dedup.Options[uint64, uint64]{All: maxSeenIDs, Age: keep})
	return &seenIDs{seed: maphash.MakeSeed(), keep: keep, ids: ids}
}

func (s *seenIDs) key(w peerID, id string) uint64 {
	return maphash.Comparable(s.seed, struct {
		peer peerID
		id   string
	}{w, id})
}

// first notes that the session saw an envelope of its peer. When its id was seen
// before within bounds it returns false, by whom, and whether it was the same one.
func (s *seenIDs) first(w peerID, e wire.Envelope, session uint64) (by uint64, same, fresh bool) {
	key, digest := s.key(w, e.ID), s.digest(e)
	s.mu.Lock()
	defer s.mu.Unlock()
	by, verdict := s.ids.Begin(w.principal, key, digest, session)
	if verdict == dedup.Fresh {
		s.ids.Settle(w.principal, key, session)
		return session, true, true
	}
	return by, verdict == dedup.Settled, false
}

// digest is of what makes an envelope that came twice the same one.
func (s *seenIDs) digest(e wire.Envelope) uint64 {
	var h maphash.Hash
	h.SetSeed(s.seed)
	for _, text := range [...]string{string(e.Kind), e.To, e.Ref} {
		_, _ = h.WriteString(text) // never an error
		_ = h.WriteByte(0xff)      // which no text has
	}
	_, _ = h.Write(e.Payload)
	return h.Sum64()
}

// again is what is told of an id that was seen.
func (s *seenIDs) again(id string) *wire.Error {
	return wire.Refusef(wire.CodeConflict, "an envelope with the id %q came within the last %s: send this one with a fresh id", id, s.keep)
}

// forget lets an id be used again: it was refused, not acted on.
func (s *seenIDs) forget(w peerID, id string) {
	key := s.key(w, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.Forget(w.principal, key)
}
