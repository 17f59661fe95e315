package stdio

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/link"
)

const (
	// readBytes is the size of one read.
	readBytes = 4 << 10
	// endBytes is how much of each end of a line over the limit is kept: enough for the id of a
	// message.
	endBytes = 256
	// idleReads is the number of empty reads after which a stream counts as broken.
	idleReads = 100
)

// splitter splits a stream into lines. It holds at most one line, up to the limit.
type splitter struct {
	r     io.Reader
	limit int

	buf      []byte // the data of one read
	from, to int    // the part of buf that is not split yet
	lf, cr   int    // index of the next of each in buf, or to; outdated if less than from
	err      error  // the error after it

	line   []byte // the part of the current line from earlier reads
	over   int    // its size, if it is over the limit and not kept
	head   string // of such a line
	tail   []byte // the last bytes of such a line
	skipLF bool   // the previous line ended with \r; a \n that follows belongs to it
	begun  bool   // the first line was cut
}

// next returns the next line without its line break, in memory that belongs to the caller, a
// *link.Reject for a line over the limit, or the error that ended the stream.
func (s *splitter) next() ([]byte, error) {
	for {
		if line, ok, err := s.cut(); ok {
			return s.unmarked(line), err
		}
		if s.err == nil {
			s.read()
			continue
		}
		if errors.Is(s.err, io.EOF) && (len(s.line) > 0 || s.over > 0) {
			line, err := s.finish(nil)
			return s.unmarked(line), err
		}
		return nil, s.err
	}
}

// unmarked returns a line, the first one without the byte order mark that some programs begin a stream with.
func (s *splitter) unmarked(line []byte) []byte {
	if s.begun {
		return line
	}
	s.begun = true
	return bytes.TrimPrefix(line, []byte(edge.Mark))
}

// cut removes one line from buf and reports whether there was one. If not, it keeps the
// beginning of the line.
func (s *splitter) cut() (line []byte, ok bool, err error) {
	if s.skipLF && s.from < s.to {
		s.skipLF = false
		if s.buf[s.from] == '\n' {
			s.from++
		}
	}
	from := s.from
	end := min(s.find('\n', &s.lf), s.find('\r', &s.cr))
	if end == s.to {
		s.from = s.to
		s.keep(s.buf[from:end])
		return nil, false, nil
	}
	s.from = end + 1
	s.skipLF = s.buf[end] == '\r'
	line, err = s.finish(s.buf[from:end])
	return line, true, err
}

// find returns the index of the next c. It scans each byte once, regardless of line breaks
// of the other kind.
func (s *splitter) find(c byte, at *int) int {
	if *at < s.from {
		*at = s.to
		if i := bytes.IndexByte(s.buf[s.from:s.to], c); i >= 0 {
			*at = s.from + i
		}
	}
	return *at
}

// keep appends b to the current line.
func (s *splitter) keep(b []byte) {
	switch {
	case s.over > 0:
		s.over += len(b)
		s.keepEnd(b)
	case len(s.line)+len(b) > s.limit:
		s.over = len(s.line) + len(b)
		s.head = string(s.line[:min(len(s.line), endBytes)])
		s.head += string(b[:min(len(b), endBytes-len(s.head))])
		s.keepEnd(s.line)
		s.keepEnd(b)
		s.line = nil
	default:
		s.line = append(s.line, b...)
	}
}

// keepEnd appends b to the tail of a line over the limit.
func (s *splitter) keepEnd(b []byte) {
	b = b[max(0, len(b)-endBytes):]
	if more := len(s.tail) + len(b) - endBytes; more > 0 {
		s.tail = s.tail[:copy(s.tail, s.tail[more:])]
	}
	s.tail = append(s.tail, b...)
}

// finish returns the current line with b as its end.
func (s *splitter) finish(b []byte) ([]byte, error) {
	if len(s.line) == 0 && s.over == 0 && len(b) <= s.limit {
		return append(make([]byte, 0, len(b)), b...), nil
	}
	s.keep(b)
	line, size, head, tail := s.line, s.over, s.head, string(s.tail)
	s.line, s.over, s.head, s.tail = nil, 0, "", s.tail[:0]
	if size > 0 {
		return nil, &link.Reject{
			Cause: link.TooLarge,
			Text:  fmt.Sprintf("line of %d bytes is over the limit of %d", size, s.limit),
			Size:  size,
			Limit: s.limit,
			Head:  head,
			Tail:  tail,
		}
	}
	return line, nil
}

// read reads more data, or the end of the stream.
func (s *splitter) read() {
	if s.buf == nil {
		s.buf = make([]byte, readBytes)
	}
	for range idleReads {
		n, err := s.r.Read(s.buf)
		s.from, s.to, s.err = 0, n, err
		s.lf, s.cr = -1, -1
		if n > 0 || err != nil {
			return
		}
	}
	s.err = io.ErrNoProgress
}
