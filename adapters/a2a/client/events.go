package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/dragoman-hub/dragoman/core/edge"
)

// errLongEvent is the error of a stream with a line or an event that exceeds the limit.
var errLongEvent = errors.New("an event of the stream is too long")

// eventReader reads the data of server-sent events (WHATWG HTML, section 9.2). It ignores
// comments and the fields event, id and retry, which A2A does not use. Lines end with LF or
// CR LF; a CR alone, which no A2A peer sends, ends no line.
type eventReader struct {
	from *bufio.Reader
	max  int    // the maximum length of a line and of the data of an event
	long []byte // a line longer than the buffer of from
	data []byte

	begun bool // what the stream begins with was read
}

// mostSpare is the largest buffer that is kept for the next event.
const mostSpare = 64 << 10

func newEventReader(from io.Reader, limit int) *eventReader {
	return &eventReader{from: bufio.NewReaderSize(from, 4<<10), max: limit}
}

// next returns the data of the next event, which is valid until the next call. It returns
// io.EOF at the end of the stream, where an event without the empty line that ends it does
// not count; errLongEvent; or the error of the stream.
func (r *eventReader) next() ([]byte, error) {
	if r.data = r.data[:0]; cap(r.data) > mostSpare {
		r.data = nil
	}
	if !r.begun {
		r.begun = true
		if first, _ := r.from.Peek(len(edge.Mark)); string(first) == edge.Mark {
			_, _ = r.from.Discard(len(edge.Mark)) // it is there
		}
	}
	for lines := 0; ; {
		line, err := r.line()
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if lines > 0 {
				return r.data, nil
			}
			continue
		}
		value, ok := bytes.CutPrefix(line, []byte("data"))
		if !ok || len(value) > 0 && value[0] != ':' {
			continue
		}
		if len(value) > 0 {
			value = bytes.TrimPrefix(value[1:], []byte(" "))
		}
		if lines++; lines > 1 {
			r.data = append(r.data, '\n')
		}
		if len(r.data)+len(value) > r.max {
			return nil, errLongEvent
		}
		r.data = append(r.data, value...)
	}
}

// line returns the next line without its end, valid until the next call.
func (r *eventReader) line() ([]byte, error) {
	if r.long = r.long[:0]; cap(r.long) > mostSpare {
		r.long = nil
	}
	for {
		piece, err := r.from.ReadSlice('\n')
		if len(r.long)+len(piece) > r.max+len("data: \r\n") {
			return nil, errLongEvent
		}
		if err == nil && len(r.long) == 0 {
			return withoutEnd(piece), nil
		}
		if r.long = append(r.long, piece...); err == nil {
			return withoutEnd(r.long), nil
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, err
		}
	}
}

// withoutEnd returns a line without the LF or CR LF at its end.
func withoutEnd(line []byte) []byte {
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r"))
}
