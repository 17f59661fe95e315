package pirpc

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/pirpc/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// errDiverged is why a run fails whose retry says something else than was told before.
var errDiverged = errors.New("the retry differs from what was told")

// speech tells the text of a run: each piece once, as it comes, and only what counts.
//
// A message that the model broke off may be retried (auto_retry_start), and the text of the
// broken one is told already. What the next attempt repeats of it is not told again; from there
// on it is told as usual. An attempt that says something else cannot be reconciled, for what was
// told cannot be taken back: then the run fails.
type speech struct {
	say   func(text string) error
	think func(text string) error

	told []byte // of the message: by the attempt that got furthest
	at   int    // how much of it the current attempt has said
	last int    // the index of the latest block of text
	// hole says that a line was lost: the rest of the message is told at its end.
	hole     bool
	thoughts map[int]int // how many bytes of each block of thinking were told

	halves, thoughtHalves strictjson.Halves // of the latest block of each
	lastThought           int               // the index of that of thinking
}

// update takes a step of a message.
func (s *speech) update(u *wire.Update) error {
	switch u.Kind {
	case wire.TextDelta:
		if u.Index < s.last {
			s.hole = true // the order of the message is known at its end
		}
		if s.hole {
			return nil
		}
		rest := ""
		if u.Index != s.last {
			s.last, rest = u.Index, s.halves.Rest()
		}
		return s.add(rest + s.halves.Join(u.Delta))
	case wire.ThinkingDelta:
		if u.Index != s.lastThought {
			s.lastThought, s.thoughtHalves = u.Index, strictjson.Halves{} // the end of the message has what is left
		}
		thought := s.thoughtHalves.Join(u.Delta)
		if thought == "" {
			return nil
		}
		if s.thoughts == nil {
			s.thoughts = map[int]int{}
		}
		s.thoughts[u.Index] += len(thought)
		return s.think(thought)
	}
	return nil
}

// add says what the attempt adds, without what was told before.
func (s *speech) add(text string) error {
	again := min(len(text), len(s.told)-s.at)
	if string(s.told[s.at:s.at+again]) != text[:again] {
		return errDiverged
	}
	s.at += again
	if text = text[again:]; text == "" {
		return nil
	}
	s.told = append(s.told, text...)
	s.at = len(s.told)
	return s.say(text)
}

// end takes the end of a message, which has all of its text. It reports whether the end agrees
// with what was streamed.
func (s *speech) end(m wire.Message) (bool, error) {
	for i := range len(m.Thoughts) + len(s.thoughts) {
		thought, told := m.Thoughts[i], s.thoughts[i]
		if told < len(thought) && utf8.RuneStart(thought[told]) {
			if err := s.think(thought[told:]); err != nil {
				return true, err
			}
		}
	}
	s.thoughts = nil
	if m.StopReason == wire.StopError {
		s.again() // a retry may follow, which begins it again
		return true, nil
	}
	rest, agrees := strings.CutPrefix(m.Text, string(s.told[:s.at]))
	if agrees {
		if err := s.add(rest); err != nil {
			return true, err
		}
	}
	if s.at < len(s.told) {
		return true, errDiverged // the attempt that counts says less
	}
	s.reset()
	return agrees, nil
}

// again begins the next attempt of the same message.
func (s *speech) again() {
	s.at, s.last, s.hole = 0, 0, false
	s.halves, s.thoughtHalves = strictjson.Halves{}, strictjson.Halves{}
}

// reset begins another message.
func (s *speech) reset() {
	s.told = s.told[:0]
	s.again()
}
