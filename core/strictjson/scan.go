package strictjson

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// scanner reads one JSON text once, from left to right. It holds every rule
// of Check; where a plan is given it also holds the text against the type
// that is to receive it.
//
// Errors gather their path on the way out of the recursion, so that a text
// without fault pays nothing for it.
type scanner struct {
	data     []byte
	pos      int
	depth    int
	maxDepth int
	strict   bool // unknown keys are errors
	probe    bool // leaves are tried out on their types
	gathers  bool // the members of the outermost object
	members  []Member
	begins   []int         // where their values do
	wholes   []wholeNumber // those that encoding/json would not take
}

func (s *scanner) run(p *plan, limits Limits) *Error {
	limits = limits.filled()
	if len(s.data) > limits.Bytes {
		return &Error{
			Offset:  limits.Bytes,
			Problem: fmt.Sprintf("too large: %d bytes, the limit is %d", len(s.data), limits.Bytes),
		}
	}
	s.maxDepth = limits.Depth
	s.space()
	if s.pos == len(s.data) {
		return s.wrong("nothing to read", "send one JSON value")
	}
	if bytes.HasPrefix(s.data[s.pos:], []byte("\ufeff")) {
		return &Error{Problem: "byte order mark", Advice: "send the text without it", Offset: s.pos}
	}
	if err := s.value(p); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.data) {
		return s.wrong(s.unexpected()+" after the end of the value", "send one JSON value at a time")
	}
	return nil
}

// value reads the value that begins at pos; p may be nil.
func (s *scanner) value(p *plan) *Error {
	if s.pos == len(s.data) {
		return s.truncated()
	}
	start := s.pos
	class := kinds[s.data[s.pos]]
	if p != nil && !p.takes(class) {
		return &Error{Offset: start, Problem: "want " + p.want() + ", got " + class.String()}
	}
	var err *Error
	switch class {
	case Object:
		err = s.object(p)
	case Array:
		err = s.array(p)
	case String:
		_, _, err = s.text()
	case Number:
		var whole bool
		whole, err = s.number()
		if err == nil && !whole && p != nil && p.kind == wholeForm {
			err = s.wholeNumber(start)
		}
	case Bool:
		if s.data[s.pos] == 't' {
			err = s.literal("true")
		} else {
			err = s.literal("false")
		}
	case Null:
		err = s.literal("null")
	default:
		return s.noValue()
	}
	if err == nil && s.probe && p != nil {
		err = p.tryOut(s.data[start:s.pos], start)
	}
	return err
}

// fewMembers is for how many members there is room at once: most messages have no
// more.
const fewMembers = 4

// object reads the object that begins at pos.
func (s *scanner) object(p *plan) *Error {
	if err := s.enter(); err != nil {
		return err
	}
	gathers := s.gathers && s.depth == 1
	if gathers {
		s.members = make([]Member, 0, fewMembers)
	}
	var keys keySet
	for first := true; ; first = false {
		if done, err := s.next(first, '}', "an object"); done || err != nil {
			s.depth--
			return err
		}
		at := s.pos
		key, err := s.key()
		if err != nil {
			return err
		}
		if !keys.add(key) {
			return &Error{Offset: at, Problem: "duplicate key " + quote(key), Advice: "send each key once"}
		}
		var of *plan
		if p != nil {
			var problem string
			if of, problem = p.member(key, s.strict); problem != "" {
				return &Error{Offset: at, Problem: problem}
			}
		}
		s.space()
		if s.pos == len(s.data) {
			return s.truncated()
		}
		if s.data[s.pos] != ':' {
			return s.wrong(s.unexpected()+" after the key "+quote(key), "put a colon there")
		}
		s.pos++
		s.space()
		began := s.pos
		if err := s.value(of); err != nil {
			return err.underKey(key)
		}
		if gathers {
			s.members = append(s.members, Member{key, s.data[began:s.pos:s.pos]})
			s.begins = append(s.begins, began)
		}
	}
}

// array reads the array that begins at pos.
func (s *scanner) array(p *plan) *Error {
	if err := s.enter(); err != nil {
		return err
	}
	var of *plan
	if p != nil {
		of = p.item()
	}
	for i := 0; ; i++ {
		if done, err := s.next(i == 0, ']', "an array"); done || err != nil {
			s.depth--
			return err
		}
		if err := s.value(of); err != nil {
			return err.underIndex(i)
		}
	}
}

// enter steps over the opening bracket, one level down.
func (s *scanner) enter() *Error {
	if s.depth++; s.depth > s.maxDepth {
		return &Error{Offset: s.pos, Problem: fmt.Sprintf("nested more than %d deep", s.maxDepth), Advice: "send a flatter value"}
	}
	s.pos++
	return nil
}

// next moves to the next member of an object or array, or past its closing
// bracket and reports done.
func (s *scanner) next(first bool, closing byte, within string) (done bool, err *Error) {
	s.space()
	if s.pos == len(s.data) {
		return false, s.truncated()
	}
	switch c := s.data[s.pos]; {
	case c == closing:
		s.pos++
		return true, nil
	case first:
		return false, nil
	case c != ',':
		return false, s.wrong(s.unexpected()+" in "+within, fmt.Sprintf("put a comma or %c there", closing))
	}
	comma := s.pos
	s.pos++
	s.space()
	if s.pos < len(s.data) && s.data[s.pos] == closing {
		s.pos = comma
		return false, s.wrong("comma before "+string(closing), "remove it")
	}
	return false, nil
}

// key reads a key and returns it unescaped.
func (s *scanner) key() ([]byte, *Error) {
	at := s.pos
	if at == len(s.data) {
		return nil, s.truncated()
	}
	if s.data[at] != '"' {
		return nil, s.wrong(s.unexpected()+" where a key should be", "put keys in double quotes")
	}
	raw, escaped, err := s.text()
	if err != nil || !escaped {
		return raw, err
	}
	var text string
	if json.Unmarshal(s.data[at:s.pos], &text) != nil || bytes.IndexByte([]byte(text), 0) >= 0 {
		return nil, &Error{Offset: at, Problem: "NUL in a key", Advice: "remove it"}
	}
	return []byte(text), nil
}

// wrong says why there is no JSON at pos.
func (s *scanner) wrong(problem, advice string) *Error {
	return &Error{Offset: s.pos, Problem: "not JSON: " + problem, Advice: advice}
}

func (s *scanner) truncated() *Error {
	s.pos = len(s.data)
	return s.wrong("the text ends too early", "send the whole value")
}

// unexpected names the character at pos.
func (s *scanner) unexpected() string {
	r, size := utf8.DecodeRune(s.data[s.pos:])
	if r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("unexpected byte 0x%02x", s.data[s.pos])
	}
	return fmt.Sprintf("unexpected %q", r)
}

// noValue explains the commonest reasons for which no value begins at pos.
func (s *scanner) noValue() *Error {
	advice := "send a string, number, object, array, true, false or null there"
	switch s.data[s.pos] {
	case '\'', '`':
		advice = "put strings in double quotes"
	case '/', '#':
		advice = "remove comments"
	case '+', '.':
		advice = "begin a number with a digit or a minus sign"
	case 'T', 'F':
		advice = "write true and false in lower case"
	case 'N', 'I', 'u':
		advice = "write null, or a string: JSON has no NaN, Infinity, None or undefined"
	}
	return s.wrong(s.unexpected(), advice)
}
