package rest

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
)

// gap reports events of a task that are no longer kept.
type gap struct {
	Task core.TaskID `json:"task"`
	From uint64      `json:"from"`
	To   uint64      `json:"to"`
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
// In a stream of all tasks, an event names its task, and server-sent events have no id: a
// cursor is only valid for one task.
type stream struct {
	outlet
	sse, all bool
	buf      []byte
}

func newStream(o outlet, sse, all bool) *stream { return &stream{outlet: o, sse: sse, all: all} }

// streamBytes is how much is collected for one write.
const streamBytes = 64 << 10

// event appends an event.
func (s *stream) event(task core.TaskID, e core.Event) error {
	text, err := e.MarshalJSON()
	if err != nil {
		return err
	}
	cursor := e.Cursor().String()
	switch {
	case s.sse && s.all:
		s.begin(e.Body.Kind().String())
	case s.sse:
		s.buf = append(append(append(s.buf, "id: "...), cursor...), '\n')
		s.begin(e.Body.Kind().String())
	}
	s.buf = append(s.buf, '{')
	if s.all {
		s.buf = append(append(append(s.buf, `"task":"`...), task...), `",`...)
	}
	if s.all || !s.sse {
		s.buf = append(append(append(s.buf, `"cursor":"`...), cursor...), `",`...)
	}
	s.buf = append(s.buf, text[1:]...) // an event is an object with members
	s.end()
	if len(s.buf) > streamBytes {
		return s.drain()
	}
	return nil
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
	s.buf = s.buf[:0]
	return err
}

// send writes what was appended and flushes it.
func (s *stream) send() error {
	if err := s.drain(); err != nil {
		return err
	}
	return s.flush()
}
