package audit

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Broken is the error of lines that are not a chain.
type Broken struct {
	// Line is the place of the line that is wrong, from 1.
	Line int
	// Seq is the sequence number of the line; 0 if it cannot be read.
	Seq    uint64
	Reason string
}

// Error implements error.
func (b *Broken) Error() string {
	if b.Seq == 0 {
		return fmt.Sprintf("line %d: %s", b.Line, b.Reason)
	}
	return fmt.Sprintf("line %d (seq %d): %s", b.Line, b.Seq, b.Reason)
}

// Chain checks lines one after another. The zero Chain begins with the first.
type Chain struct {
	// First and Last are the sequence numbers of the lines so far.
	First, Last uint64
	// Lines is how many there were, and Missing how many entries they say are missing; Unknown
	// is how often nobody knows how many.
	Lines            int
	Missing, Unknown uint64

	hash hash
	torn bool // the line before could not be read
}

// Next checks the next line, which may end with a line feed. Its error is a [Broken]. A line
// that cannot be read, such as one that a kill cut off, is allowed where the line after it has
// its hash and says that entries are missing.
func (c *Chain) Next(line []byte) error {
	line = bytes.TrimSuffix(line, []byte("\n"))
	c.Lines++
	l, ok := parse(line)
	if !ok {
		return c.tear(line)
	}
	if err := c.follow(l); err != nil {
		return err
	}
	if l.Act == ActMissing {
		c.Missing += l.Count
		if l.Count == 0 {
			c.Unknown++
		}
	}
	c.Last, c.hash, c.torn = l.Seq, hashOf(line), false
	return nil
}

// tear notes a line that cannot be read, of which there is one in a row.
func (c *Chain) tear(line []byte) error {
	if c.torn {
		return c.broken(0, "it is not a line of an audit")
	}
	if c.torn, c.hash = true, hashOf(line); c.Last > 0 {
		c.Last++
	}
	return nil
}

// follow checks that a line follows the one before.
func (c *Chain) follow(l Line) error {
	switch {
	case c.Lines == 1:
		c.First = l.Seq
		if l.Seq == 1 && l.Prev != (hash{}).String() {
			return c.broken(l.Seq, "it is the first line, and its prev is not 64 zeros")
		}
	case c.torn && (l.Act != ActMissing || l.Prev != c.hash.String()):
		c.Lines--
		return c.broken(0, "it is not a line of an audit")
	case l.Prev != c.hash.String():
		return c.broken(l.Seq, fmt.Sprintf("its prev is not the hash of the line before, %s: that line was changed, or lines between were removed or added", c.hash))
	case c.First == 0: // what comes after a line that cannot be read
		c.First = l.Seq
	case l.Seq != c.Last+1:
		return c.broken(l.Seq, fmt.Sprintf("it follows %d: lines were removed or added", c.Last))
	}
	return nil
}

// End checks that the last line could be read.
func (c *Chain) End() error {
	if c.torn {
		return c.broken(0, "it is cut off, and nothing follows it")
	}
	return nil
}

// Hash returns the hash of the last line, which the next one will have.
func (c *Chain) Hash() string { return c.hash.String() }

func (c *Chain) broken(seq uint64, reason string) error { return &Broken{c.Lines, seq, reason} }

// maxLine is more than any line has.
const maxLine = 64 << 10

// parse reads a line.
func parse(line []byte) (l Line, ok bool) {
	if err := strictjson.Decode(line, strictjson.Limits{Bytes: maxLine}, &l); err != nil {
		return Line{}, false
	}
	return l, l.Seq > 0 && len(l.Prev) == 2*len(hash{}) && strings.Trim(l.Prev, "0123456789abcdef") == ""
}
