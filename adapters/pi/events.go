package pi

import (
	"strconv"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Snapshots says whether a connection is told the whole message so far with its
// updates. The zero Snapshots are SnapshotsAll.
type Snapshots uint8

// The ways of telling a message that grows.
const (
	_ Snapshots = iota
	// SnapshotsAll repeats the message in every update, and sends as many updates as
	// are worth it.
	SnapshotsAll
	// SnapshotsNone sends every delta at once and no message with it.
	SnapshotsNone
	// unheard sends nothing: the view is there to put the messages together.
	unheard
)

// ParseSnapshots reads what a client asks for with ?snapshots= in its address: all,
// none, or nothing. It returns an invalid Fault for anything else.
func ParseSnapshots(text string) (Snapshots, error) {
	switch text {
	case "", "all":
		return SnapshotsAll, nil
	case "none":
		return SnapshotsNone, nil
	}
	return 0, core.NewFault(core.CodeInvalid, "snapshots=%q is not known: ask for all or none", text)
}

// sessionEvents is what every event of a session begins with (section 19).
func sessionEvents(session string) []byte {
	b := wire.AppendString([]byte(`{"type":"event","sessionId":`), session)
	return append(b, `,"event":`...)
}

// frames are made one behind the other in memory that they share: a run is a dozen
// of them at once. Nil makes none.
type frames struct {
	list [][]byte
	room []byte
	// lends says that they stand on sheets: on sheet now, unless on memory of their own.
	lends bool
	sheet *sheet
	ends  []end // of sheets, among the frames in list
}

// framesRoom is how much memory frames share: a run of one short text fits.
const framesRoom = 4 << 10

// add adds the frame, of about size bytes, that fill appends.
func (f *frames) add(size int, fill func(dst []byte) []byte) {
	if f == nil {
		return
	}
	if cap(f.room)-len(f.room) < size {
		f.turn(size)
	}
	n := len(f.room)
	b := fill(f.room[n:])
	if cap(b) == cap(f.room)-n { // it did not outgrow the room
		f.room = f.room[:n+len(b)]
	}
	if f.list == nil {
		f.list = make([][]byte, 0, 4)
	}
	f.list = append(f.list, b[:len(b):len(b)])
}

// event adds an event whose JSON, of about size bytes, fill appends.
func (f *frames) event(prefix []byte, size int, fill func([]byte) []byte) {
	f.add(len(prefix)+size+1, func(b []byte) []byte { return append(fill(append(b, prefix...)), '}') })
}

const (
	agentStart = `{"type":"agent_start"}`
	turnStart  = `{"type":"turn_start"}`
)

// plain adds an event that never varies.
func (f *frames) plain(prefix []byte, json string) {
	f.event(prefix, len(json), func(b []byte) []byte { return append(b, json...) })
}

// message adds the message_start or message_end of an encoded message.
func (f *frames) message(prefix []byte, phase string, json []byte) {
	f.event(prefix, len(json)+48, func(b []byte) []byte {
		b = append(append(b, `{"type":"message_`...), phase...)
		return append(append(append(b, `","message":`...), json...), '}')
	})
}

// spoken adds the two events of a message that comes whole.
func (f *frames) spoken(prefix []byte, m conversation.Message) {
	f.message(prefix, "start", m.JSON)
	f.message(prefix, "end", m.JSON)
}

// turnEnd adds the event that ends a turn.
func (f *frames) turnEnd(prefix, reply []byte, results []conversation.Message) {
	f.event(prefix, len(reply)+conversation.JSONSize(results)+64, func(b []byte) []byte {
		b = append(append(b, `{"type":"turn_end","message":`...), reply...)
		return append(conversation.AppendMessages(append(b, `,"toolResults":`...), results), '}')
	})
}

// agentEnd returns the event that ends a run, with all of its messages.
func agentEnd(prefix []byte, messages []conversation.Message) []byte {
	b := append(make([]byte, 0, len(prefix)+conversation.JSONSize(messages)+48), prefix...)
	return append(conversation.AppendMessages(append(b, `{"type":"agent_end","messages":`...), messages), '}', '}')
}

// notice adds an event that asks the client to show a line of text (section 18;
// facts, section 7.1).
func (f *frames) notice(prefix []byte, at int64, kind, text string) {
	f.event(prefix, len(text)+160, func(b []byte) []byte {
		b = strconv.AppendInt(append(b, `{"type":"extension_ui_request","requestId":"notify-`...), at, 10)
		b = wire.AppendString(append(b, `","method":"notify","message":`...), text)
		return append(wire.AppendString(append(b, `,"notifyType":`...), kind), '}')
	})
}

// tool adds a tool_execution event of a call: phase is the end of its type, rest
// appends what it has beside the call.
func (f *frames) tool(prefix []byte, phase string, c *toolCall, size int, rest func([]byte) []byte) {
	f.event(prefix, len(c.id)+len(c.name)+len(c.args)+size+128, func(b []byte) []byte {
		b = append(append(b, `{"type":"tool_execution_`...), phase...)
		b = wire.AppendString(append(b, `","toolCallId":`...), c.id)
		b = wire.AppendString(append(b, `,"toolName":`...), c.name)
		if phase != "end" {
			b = append(append(b, `,"args":`...), c.args...)
		}
		if rest != nil {
			b = rest(b)
		}
		return append(b, '}')
	})
}
