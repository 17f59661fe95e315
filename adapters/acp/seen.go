package acp

import (
	"hash/maphash"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core/dedup"
)

// maxSeenIDs bounds how many ids are remembered, as in the released code (ACP wire facts,
// section 7).
const maxSeenIDs = 100_000

// seenIDs remembers the ids of envelopes that were acted on, so that none is acted
// on twice. It is safe for concurrent use.
type seenIDs struct {
	seed maphash.Seed

	mu sync.Mutex
	// ids has the session that received an envelope and a digest of the envelope. The keys
	// are hashes, since an id may be long.
	ids *dedup.Keys[uint64, uint64, uint64]
}

func newSeenIDs() *seenIDs {
	ids := dedup.New[uint64, uint64, uint64](dedup.Options{All: maxSeenIDs, Age: KeepIDs})
	return &seenIDs{seed: maphash.MakeSeed(), ids: ids}
}

func (s *seenIDs) key(w peerID, id string) uint64 {
	return maphash.Comparable(s.seed, struct {
		peer peerID
		id   string
	}{w, id})
}

// add notes that the session received an envelope of its peer. If the id was seen before,
// fresh is false, by is the session that received it, and same tells whether it was the
// same envelope.
func (s *seenIDs) add(w peerID, e wire.Envelope, session uint64) (by uint64, same, fresh bool) {
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

// digest returns a hash of the members in which two envelopes with the same id may differ.
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

// conflict returns the error for an id that was seen before.
func (s *seenIDs) conflict(id string) *wire.Error {
	return wire.Refusef(wire.CodeConflict, "an envelope with the id %q came within the last %s: send this one with a fresh id", id, KeepIDs)
}

// forget lets an id be used again, since its envelope was refused.
func (s *seenIDs) forget(w peerID, id string) {
	key := s.key(w, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ids.Forget(w.principal, key)
}
