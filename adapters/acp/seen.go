package acp

import (
	"hash/maphash"
	"sync"
	"time"
)

// seenMost bounds the ids that are known to have been seen, as in the released code
// (ACP wire facts, section 7).
const seenMost = 100_000

// seenIDs remembers the ids of envelopes that were acted on, so that none is acted
// on twice. It is safe for concurrent use.
type seenIDs struct {
	seed maphash.Seed
	keep time.Duration

	mu   sync.Mutex
	at   map[uint64]sighting
	ring []seenAt // in the order of time, from head
	head int
	next uint64
}

type sighting struct {
	session uint64 // which session saw it
	number  uint64
	says    uint64 // a digest of what it says, but for when
}

type seenAt struct {
	key    uint64
	number uint64
	at     time.Time
}

func newSeenIDs(keep time.Duration) *seenIDs {
	return &seenIDs{seed: maphash.MakeSeed(), keep: keep, at: map[uint64]sighting{}}
}

type seenKey struct {
	who who
	id  string
}

// seenText is what makes an envelope that came twice the same one.
type seenText struct{ kind, to, ref, payload string }

// first notes that the session saw an envelope of its peer. When its id was seen
// before within bounds it returns false, by whom, and whether it was the same one.
func (s *seenIDs) first(w who, e Envelope, session uint64) (by uint64, same, fresh bool) {
	key, now := maphash.Comparable(s.seed, seenKey{w, e.ID}), time.Now()
	says := maphash.Comparable(s.seed, seenText{string(e.Kind), e.To, e.Ref, string(e.Payload)})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.expire(now)
	if was, ok := s.at[key]; ok {
		return was.session, was.says == says, false
	}
	s.next++
	s.at[key] = sighting{session, s.next, says}
	s.ring = append(s.ring, seenAt{key, s.next, now})
	return session, true, true
}

// again is what is told of an id that was seen.
func (s *seenIDs) again(id string) *Error {
	return refusef(CodeConflict, "an envelope with the id %q came within the last %s: send this one with a fresh id", id, s.keep)
}

// forget lets an id be used again: it was refused, not acted on.
func (s *seenIDs) forget(w who, id string) {
	key := maphash.Comparable(s.seed, seenKey{w, id})
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.at, key)
}

// expire drops what is too old or too much. Callers hold mu.
func (s *seenIDs) expire(now time.Time) {
	for s.head < len(s.ring) {
		e := s.ring[s.head]
		if len(s.ring)-s.head < seenMost && now.Sub(e.at) < s.keep {
			break
		}
		if s.at[e.key].number == e.number {
			delete(s.at, e.key)
		}
		s.head++
	}
	if s.head > 1024 && s.head > len(s.ring)/2 {
		s.ring = append([]seenAt(nil), s.ring[s.head:]...)
		s.head = 0
	}
}
