package command

import "time"

// announce adds a phase of the command to the history and sends its lifecycle event.
func (x *Execution) announce(p phase, at time.Time, r *response) {
	x.engine.journal.note(x.tracked, p, at, r)
	x.engine.host.Announce(x, x.lifecycle(p, r))
}

// lifecycle returns the frame of a lifecycle event of the command; r is set for the last
// only. The frames of a command share one buffer.
func (x *Execution) lifecycle(p phase, r *response) []byte {
	identity := x.tracked.identity
	if x.lifecycleBuf == nil {
		x.lifecycleBuf = make([]byte, 0, 3*(len(identity)+48)+64)
	}
	b := x.lifecycleBuf
	b = append(b, `{"type":"`...)
	b = append(append(append(b, p...), `","data":{`...), identity...)
	if r != nil {
		b = appendOutcome(b, *r, false)
	}
	b = append(b, '}', '}')
	if cap(b) == cap(x.lifecycleBuf) { // it did not outgrow the buffer
		x.lifecycleBuf = b[len(b):]
	}
	return b[:len(b):len(b)]
}
