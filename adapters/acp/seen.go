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

	mu    sync.Mutex
	at    map[uint64]sighting
	by    map[string]*sightings // by principal
	most  *sightings            // of the principal that has most, as far as is known
	count int                   // of all
	next  uint64
	swept time.Time
}

type sighting struct {
	session uint64 // which session saw it
	number  uint64
	says    uint64 // a digest of what it says, but for when
}

// sightings are those of one principal, in the order of time, from head.
type sightings struct {
	ring []seenAt
	head int
}

type seenAt struct {
	key    uint64
	number uint64
	at     time.Time
}

func newSeenIDs(keep time.Duration) *seenIDs {
	return &seenIDs{seed: maphash.MakeSeed(), keep: keep, at: map[uint64]sighting{}, by: map[string]*sightings{}, swept: time.Now()}
}

type seenKey struct {
	who who
	id  string
}

// first notes that the session saw an envelope of its peer. When its id was seen
// before within bounds it returns false, by whom, and whether it was the same one.
// One who sends more than there is room for forgets his own ids, not those of others.
func (s *seenIDs) first(w who, e Envelope, session uint64) (by uint64, same, fresh bool) {
	key, says, now := maphash.Comparable(s.seed, seenKey{w, e.ID}), s.digest(e), time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sweep(now)
	mine := s.by[w.principal]
	if mine == nil {
		mine = &sightings{}
		s.by[w.principal] = mine
	}
	s.expire(mine, now)
	if was, ok := s.at[key]; ok {
		return was.session, was.says == says, false
	}
	s.next++
	s.at[key] = sighting{session, s.next, says}
	mine.ring = append(mine.ring, seenAt{key, s.next, now})
	s.count++
	if s.most == nil || mine.len() > s.most.len() {
		s.most = mine
	}
	if s.count > seenMost {
		s.drop(s.most)
	}
	return session, true, true
}

// digest is of what makes an envelope that came twice the same one.
func (s *seenIDs) digest(e Envelope) uint64 {
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

func (r *sightings) len() int { return len(r.ring) - r.head }

// expire drops what a principal sent too long ago. Callers hold mu.
func (s *seenIDs) expire(r *sightings, now time.Time) {
	for r.len() > 0 && now.Sub(r.ring[r.head].at) >= s.keep {
		s.drop(r)
	}
}

// sweep drops what those sent too long ago who send no more, every now and then.
// Callers hold mu.
func (s *seenIDs) sweep(now time.Time) {
	if now.Sub(s.swept) < s.keep {
		return
	}
	s.swept = now
	for principal, r := range s.by {
		if s.expire(r, now); r.len() == 0 {
			delete(s.by, principal)
		}
	}
}

// drop drops the oldest that a principal sent. Callers hold mu.
func (s *seenIDs) drop(r *sightings) {
	e := r.ring[r.head]
	if s.at[e.key].number == e.number {
		delete(s.at, e.key)
	}
	s.count--
	r.head++
	if r.head > 16 && r.head > len(r.ring)/2 {
		r.ring = append([]seenAt(nil), r.ring[r.head:]...)
		r.head = 0
	}
}
