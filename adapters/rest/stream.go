package rest

import (
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// gap reports events of a task that are no longer kept, to its end if To is zero; or, in a stream
// of all tasks, that what was opened after a task may be missing.
type gap struct {
	Task  core.TaskID `json:"task,omitempty"`
	From  uint64      `json:"from,omitempty"`
	To    uint64      `json:"to,omitempty"`
	After core.TaskID `json:"after,omitempty"`
}

// shutdown reports that the hub is stopping, and why.
type shutdown struct {
	Reason string `json:"reason"`
}

// stream writes events of tasks as server-sent events or JSON lines:
//
//	id: 1.3                                  {"cursor":"1.3","seq":3,...,"kind":"text",...}
//	event: text                              {"gap":{"task":"...","from":1,"to":7}}
//	data: {"seq":3,...,"kind":"text",...}    {"shutdown":{"reason":"..."}}
//
// In a stream of all tasks, an event names its task, and has an id that is a position in the stream,
// in lines too: a cursor is only valid for one task.
type stream struct {
	outlet
	sse  bool
	feed *hub.Feed // nil for the stream of one task
	buf  []byte
	// long is where the id of the latest event is, if it is long.
	long struct{ from, to int }
}

func newStream(o outlet, sse bool, feed *hub.Feed) *stream {
	return &stream{outlet: o, sse: sse, feed: feed}
}

// shortID is how long an id may be that each event has. A longer one, as when many tasks run, has only
// the last event of a write.
const shortID = 512

// streamBytes is how much is collected for one write.
const streamBytes = 64 << 10

// batch appends what a source returned. It reports whether that is the last.
func (s *stream) batch(b hub.FeedBatch, of follow) (done bool, err error) {
	switch {
	case b.Draining != "":
		return false, s.control("shutdown", shutdown{b.Draining})
	case b.After != "":
		return false, s.control("gap", gap{After: b.After})
	case b.Gap != nil:
		return false, s.control("gap", gap{Task: b.Task, From: b.Gap.From, To: b.Gap.To})
	}
	for i := range b.Events {
		if err = s.event(&b, i); err != nil {
			return false, err
		}
		done = done || of.last(b.Events[i])
	}
	return done, nil
}

// event appends an event of a batch.
func (s *stream) event(b *hub.FeedBatch, i int) (err error) {
	s.shorten()
	e, task := b.Events[i], b.Task
	cursor := e.Cursor().String()
	if s.sse {
		s.id(func(b []byte) []byte {
			if s.feed != nil {
				return s.feed.Append(b, task, e)
			}
			return append(b, cursor...)
		})
		s.begin(e.Body.Kind().String())
	}
	s.buf = append(s.buf, '{')
	if s.feed != nil && !s.sse {
		s.id(func(b []byte) []byte { return s.feed.Append(b, task, e) })
	}
	if s.feed != nil {
		s.buf = append(append(append(s.buf, `"task":"`...), task...), `",`...)
	}
	if s.feed != nil || !s.sse {
		s.buf = append(append(append(s.buf, `"cursor":"`...), cursor...), `",`...)
	}
	before := len(s.buf) - 1
	comma := s.buf[before]
	if s.buf, err = b.AppendJSON(s.buf[:before], i); err != nil {
		return err
	}
	s.buf[before] = comma // an event is an object with members
	s.end()
	if len(s.buf) > streamBytes {
		return s.drain()
	}
	return nil
}

// id appends an id.
func (s *stream) id(write func([]byte) []byte) {
	before, name, end := len(s.buf), `"id":"`, `",`
	if s.sse {
		name, end = "id: ", "\n"
	}
	s.buf = append(s.buf, name...)
	n := len(s.buf)
	s.buf = write(s.buf)
	s.buf = append(s.buf, end...)
	if len(s.buf)-n > shortID {
		s.long.from, s.long.to = before, len(s.buf)
	}
}

// shorten takes the id of the latest event out, if it is long.
func (s *stream) shorten() {
	if s.long.to > 0 {
		s.buf = slices.Delete(s.buf, s.long.from, s.long.to)
		s.long.from, s.long.to = 0, 0
	}
}

// start appends the id of the stream before the first event. JSON lines have none.
func (s *stream) start() {
	if s.sse && s.feed != nil {
		s.id(s.feed.Position)
		s.buf = append(s.buf, '\n')
	}
}

// control appends a message that is not an event of a task.
func (s *stream) control(name string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if s.sse {
		s.begin(name)
		s.buf = append(s.buf, text...)
	} else {
		s.buf = append(append(append(s.buf, `{"`...), name...), `":`...)
		s.buf = append(append(s.buf, text...), '}')
	}
	s.end()
	return nil
}

// alive appends a comment that keeps the connection alive. JSON lines have none: each line
// is a value.
func (s *stream) alive() {
	if s.sse {
		s.buf = append(s.buf, ": alive\n\n"...)
	}
}

func (s *stream) begin(name string) {
	s.buf = append(append(append(s.buf, "event: "...), name...), "\ndata: "...)
}

func (s *stream) end() {
	s.buf = append(s.buf, '\n')
	if s.sse {
		s.buf = append(s.buf, '\n')
	}
}

// drain writes what was appended.
func (s *stream) drain() error {
	_, err := s.Write(s.buf)
	s.buf, s.long.from, s.long.to = s.buf[:0], 0, 0
	return err
}

// send writes what was appended and flushes it.
func (s *stream) send() error {
	if err := s.drain(); err != nil {
		return err
	}
	return s.flush()
}
