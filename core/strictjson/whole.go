package strictjson

import (
	"fmt"
	"math"
	"strconv"
)

// wholeNumber is a whole number that is written with a fraction or an exponent,
// as in 5.0 and 1e3, and where it stands.
type wholeNumber struct {
	from, to int
	value    int64
}

// wholeNumber notes the number that begins at start and ends at pos, which is written
// with a fraction or an exponent, where a whole number is wanted.
func (s *scanner) wholeNumber(start int) *Error {
	const exact = 1 << 53 // beyond it a float holds no whole number exactly
	f, err := strconv.ParseFloat(string(s.data[start:s.pos]), 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
		return &Error{Offset: start, Problem: fmt.Sprintf("want a whole number, got %s", cut(s.data[start:s.pos]))}
	}
	s.wholes = append(s.wholes, wholeNumber{start, s.pos, int64(f)})
	return nil
}

// inDigits is the text with those numbers as encoding/json takes them.
func (s *scanner) inDigits() []byte {
	if len(s.wholes) == 0 {
		return s.data
	}
	out, done := make([]byte, 0, len(s.data)), 0
	for _, n := range s.wholes {
		out = strconv.AppendInt(append(out, s.data[done:n.from]...), n.value, 10)
		done = n.to
	}
	return append(out, s.data[done:]...)
}
