package pack

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"time"
)

// events reads server-sent events (WHATWG HTML, section 9.2.6) from a stream.
type events struct {
	r     *bufio.Reader
	limit int
	// lastID is the id of the last event, and retry how long to wait before the stream is
	// opened again; zero if the server did not say.
	lastID string
	retry  time.Duration
}

func newEvents(r io.Reader, limit int) *events {
	return &events{r: bufio.NewReaderSize(r, 4<<10), limit: limit}
}

// errTooLarge is an event or a body over the limit.
var errTooLarge = errors.New("over the limit")

// maxRetry bounds what a server may ask a client to wait.
const maxRetry = 30 * time.Second

// next returns the data of the next event that has any, and io.EOF or another error at the
// end. A stream that ends within an event loses that event.
func (e *events) next() ([]byte, error) {
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
				e.lastID = string(value)
			}
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				e.retry = min(time.Duration(ms)*time.Millisecond, maxRetry)
			}
		}
	}
}

// line returns the next line without its end, and adds its bytes to size. It accepts the
// line ends \n and \r\n.
func (e *events) line(size *int) ([]byte, error) {
	var line []byte
	for {
		part, err := e.r.ReadSlice('\n')
		if *size += len(part); *size > e.limit {
			return nil, errTooLarge
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
