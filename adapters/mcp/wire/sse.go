package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// Event returns a message as an event of a stream. It must not have line breaks.
func Event(message []byte) []byte { return fmt.Appendf(nil, "event: message\ndata: %s\n\n", message) }

// Comment is a part of a stream that says nothing, but keeps the connection alive.
const Comment = ": alive\n\n"

// Events reads server-sent events (WHATWG HTML, section 9.2.6) from a stream.
type Events struct {
	// LastID is the id of the last event, and Retry how long to wait before the stream is
	// opened again; zero if the server did not say.
	LastID string
	Retry  time.Duration

	r     *bufio.Reader
	limit int
}

// NewEvents returns the events of a stream, each of at most limit bytes.
func NewEvents(r io.Reader, limit int) *Events {
	return &Events{r: bufio.NewReaderSize(r, 4<<10), limit: limit}
}

// ErrTooLarge is an event, or the body of an answer, over the limit.
var ErrTooLarge = errors.New("over the limit")

// maxRetry bounds what a server may ask a client to wait.
const maxRetry = 30 * time.Second

// Next returns the data of the next event that has any, and io.EOF or another error at the
// end. A stream that ends within an event loses that event.
func (e *Events) Next() ([]byte, error) {
	var data []byte
	var some bool
	size := 0
	for {
		line, err := e.line(&size)
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if some {
				return data, nil
			}
			size = 0
			continue
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "data":
			if some {
				data = append(data, '\n')
			}
			data, some = append(data, value...), true
		case "id":
			if bytes.IndexByte(value, 0) < 0 {
				e.LastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.Retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
			}
		}
	}
}

// line returns the next line without its end, and adds its bytes to size. It accepts the
// line ends \n and \r\n.
func (e *Events) line(size *int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if *size += len(part); *size > e.limit {
			return nil, ErrTooLarge
		}
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
