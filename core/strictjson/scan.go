package strictjson

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// index has the position of each value of a text, in order.
type index struct {
	text  []byte
	nodes []node
}

// nodeBytes is the size of a node.
const nodeBytes = 24

// node is the position of one value.
type node struct {
	from, to       uint32 // its text
	keyFrom, keyTo uint32 // its key, without the quotes
	next           uint32 // the first node after the value and its parts
	kind           Kind
	marks          mark
}

// mark is what decoding a value needs to know beforehand.
type mark uint8

const (
	escaped    mark = 1 << iota // the string has escapes
	keyEscaped                  // the key has
	fraction                    // the number has a fraction or an exponent
)

// scanner reads a JSON text once, from left to right. It checks every rule of [Check] and
// writes the index.
//
// Errors collect their path while the recursion returns, so that a correct text costs
// nothing for it.
type scanner struct {
	*index
	pos      int
	depth    int
	maxDepth int
	lenient  bool // duplicate keys, NULs in keys and bytes that are not UTF-8 pass
}

func (s *scanner) run(limits Limits) *Error {
	if len(s.text) > limits.Bytes {
		return &Error{
			Offset:  limits.Bytes,
			Problem: fmt.Sprintf("too large: %d bytes, the limit is %d", len(s.text), limits.Bytes),
		}
	}
	s.maxDepth = limits.Depth
	s.space()
	if s.pos == len(s.text) {
		return s.wrong("nothing to read", "send one JSON value")
	}
	if bytes.HasPrefix(s.text[s.pos:], []byte("\ufeff")) {
		return &Error{Problem: "byte order mark", Advice: "send the text without it", Offset: s.pos}
	}
	if err := s.value(node{}); err != nil {
		return err
	}
	s.space()
	if s.pos < len(s.text) {
		return s.wrong(s.unexpected()+" after the end of the value", "send one JSON value at a time")
	}
	return nil
}

// value reads the value that begins at pos. n holds its key.
func (s *scanner) value(n node) *Error {
	if s.pos == len(s.text) {
		return s.truncated()
	}
	n.from, n.kind = uint32(s.pos), kinds[s.text[s.pos]]
	at := len(s.nodes)
	s.nodes = append(s.nodes, n)
	var err *Error
	switch n.kind {
	case Object:
		err = s.object()
	case Array:
		err = s.array()
	case String:
		var has bool
		if _, has, err = s.readString(); has {
			s.nodes[at].marks |= escaped
		}
	case Number:
		var whole bool
		if whole, err = s.number(); !whole {
			s.nodes[at].marks |= fraction
		}
	case Bool:
		if s.text[s.pos] == 't' {
			err = s.literal("true")
		} else {
			err = s.literal("false")
		}
	case Null:
		err = s.literal("null")
	default:
		err = s.noValue()
	}
	s.nodes[at].to, s.nodes[at].next = uint32(s.pos), uint32(len(s.nodes))
	return err
}

// object reads the object that begins at pos.
func (s *scanner) object() *Error {
	if err := s.enter(); err != nil {
		return err
	}
	keys := keySet{first: len(s.nodes)}
	for first := true; ; first = false {
		if done, err := s.next(first, '}', "an object"); done || err != nil {
			s.depth--
			return err
		}
		at := s.pos
		key, has, err := s.readKey()
		if err != nil {
			return err
		}
		if !s.lenient && !keys.add(s.index, key) {
			return &Error{Offset: at, Problem: "duplicate key " + quote(key), Advice: "send each key once"}
		}
		n := node{keyFrom: uint32(at + 1), keyTo: uint32(s.pos - 1)}
		if has {
			n.marks = keyEscaped
		}
		s.space()
		if s.pos == len(s.text) {
			return s.truncated()
		}
		if s.text[s.pos] != ':' {
			return s.wrong(s.unexpected()+" after the key "+quote(key), "put a colon there")
		}
		s.pos++
		s.space()
		if err := s.value(n); err != nil {
			return err.UnderKey(key)
		}
	}
}

// array reads the array that begins at pos.
func (s *scanner) array() *Error {
	if err := s.enter(); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if done, err := s.next(i == 0, ']', "an array"); done || err != nil {
			s.depth--
			return err
		}
		if err := s.value(node{}); err != nil {
			return err.UnderIndex(i)
		}
	}
}

// enter skips the opening bracket, one level down.
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
	if s.pos == len(s.text) {
		return false, s.truncated()
	}
	switch c := s.text[s.pos]; {
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
	if s.pos < len(s.text) && s.text[s.pos] == closing {
		s.pos = comma
		return false, s.wrong("comma before "+string(closing), "remove it")
	}
	return false, nil
}

// readKey reads a key and returns it unescaped, and whether it has escapes.
func (s *scanner) readKey() (key []byte, has bool, err *Error) {
	at := s.pos
	if at == len(s.text) {
		return nil, false, s.truncated()
	}
	if s.text[at] != '"' {
		return nil, false, s.wrong(s.unexpected()+" where a key should be", "put keys in double quotes")
	}
	key, has, err = s.readString()
	if err != nil || !has {
		return key, has, err
	}
	if key = unescape(nil, key); !s.lenient && bytes.IndexByte(key, 0) >= 0 {
		return nil, false, &Error{Offset: at, Problem: "NUL in a key", Advice: "remove it"}
	}
	return key, true, nil
}

// wrong returns why there is no JSON at pos.
func (s *scanner) wrong(problem, advice string) *Error {
	return &Error{Offset: s.pos, Problem: "not JSON: " + problem, Advice: advice}
}

func (s *scanner) truncated() *Error {
	s.pos = len(s.text)
	return s.wrong("the text ends too early", "send the whole value")
}

// unexpected names the character at pos.
func (s *scanner) unexpected() string {
	r, size := utf8.DecodeRune(s.text[s.pos:])
	if r == utf8.RuneError && size <= 1 {
		return fmt.Sprintf("unexpected byte 0x%02x", s.text[s.pos])
	}
	return fmt.Sprintf("unexpected %q", r)
}

// noValue explains the most common reasons why no value begins at pos.
func (s *scanner) noValue() *Error {
	advice := "send a string, number, object, array, true, false or null there"
	switch s.text[s.pos] {
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
