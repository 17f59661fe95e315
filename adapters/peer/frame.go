package peer

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// A frame is a character and what belongs to it. Later versions add characters and members; a hub
// ignores those that it does not know.
const (
	frameHello   = 'h' // a hello, the first frame
	frameLetter  = 'l' // the number of a letter, and the letter
	frameGot     = 'g' // the number of the last letter that has come
	frameFollow  = 'f' // the id of a task, and from where on its events are wanted
	frameUnknown = 'u' // the id of a task
	frameEvents  = 'e' // the id of a task, and its events, each on a line
	frameInquiry = 'q' // a number, and an inquiry
	frameAnswer  = 'a' // the number of an inquiry, and what became of it
	frameVisit   = 'v' // the number of a tunnel, and a visit
	framePart    = 'p' // the number of a tunnel, 1 if the message goes on else 0, and a part of it
	frameRead    = 'r' // the number of a tunnel, and how many bytes were read
	frameClose   = 'c' // the number of a tunnel, and why it has ended
)

// A letter is a character, too, and what belongs to it.
const (
	letterOpen = 'o' // an opening
	letterDo   = 'd' // a call
	letterNews = 'n' // news

	letterHand    = 'm' // a transfer
	letterTaken   = 't' // the record of a transfer
	letterRefused = 'r' // the same
	letterKept    = 'k' // the same, of one that was taken
	letterLeave   = 'v' // the id of a task that is followed no more
)

// version is the version of the frames. Hubs of one version understand each other.
const version = 1

// hello says who begins the connection.
type hello struct {
	Version int `json:"version"`
	// Program is the version of the program, for the log.
	Program string `json:"program,omitempty"`
	// Got is the number of the last letter of the other hub that has come.
	Got uint64 `json:"got,omitempty"`
}

func decodeHello(b []byte) (h hello, err error) {
	err = json.Unmarshal(b, &h)
	return h, err
}

type opening struct {
	Opened  core.Event `json:"opened"`
	From    hub.Caller `json:"from"`
	Keep    bool       `json:"keep,omitempty"`
	Private bool       `json:"private,omitempty"`
}

type transfer struct {
	Events []core.Event   `json:"events"`
	Stored uint64         `json:"stored,omitempty"`
	From   hub.Caller     `json:"from"`
	Keep   bool           `json:"keep,omitempty"`
	Opener string         `json:"opener,omitempty"`
	Tried  []core.AgentID `json:"tried,omitempty"`
}

type command struct {
	By   hub.Caller `json:"by"`
	Call core.Call  `json:"call"`
}

func encode(kind byte, v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return append([]byte{kind}, b...), nil
}

func encodeOpening(o hub.Opening) ([]byte, error) {
	return encode(letterOpen, opening{o.Opened, hub.CallerOf(o.From), o.Keep, o.Private})
}

func encodeTransfer(o remote.Transfer) ([]byte, error) {
	return encode(letterHand, transfer{o.Events, o.Stored, hub.CallerOf(o.From), o.Keep, o.Opener, o.Tried})
}

func encodeCall(c core.Call) ([]byte, error) {
	return encode(letterDo, command{hub.CallerOf(c.Principal), c})
}

func decodeOpening(b []byte) (hub.Opening, error) {
	var o opening
	err := json.Unmarshal(b, &o)
	return hub.Opening{Opened: o.Opened, From: o.From.Known(), Keep: o.Keep, Private: o.Private}, err
}

func decodeTransfer(b []byte) (remote.Transfer, error) {
	var o transfer
	err := json.Unmarshal(b, &o)
	return remote.Transfer{Events: o.Events, Stored: o.Stored, From: o.From.Known(), Keep: o.Keep, Opener: o.Opener, Tried: o.Tried}, err
}

func decodeCall(b []byte) (core.Call, error) {
	var c command
	err := json.Unmarshal(b, &c)
	if err == nil && c.Call.Command == nil {
		err = errNoCommand
	}
	c.Call.Principal = c.By.Known()
	return c.Call, err
}

var errNoCommand = errors.New("a call without a command")

// idBytes is the length of the id of a task.
const idBytes = 36

// encodeRecord returns a letter about a move: the id of the task, and the number of the record.
func encodeRecord(kind byte, m remote.Record) []byte {
	return binary.AppendUvarint(append([]byte{kind}, m.Task...), m.Seq)
}

func decodeRecord(b []byte) (remote.Record, error) {
	if len(b) <= idBytes {
		return remote.Record{}, errMove
	}
	seq, n := binary.Uvarint(b[idBytes:])
	if n != len(b)-idBytes {
		return remote.Record{}, errMove
	}
	return remote.Record{Task: core.TaskID(b[:idBytes]), Seq: seq}, nil
}

var errMove = errors.New("a move that is not the id of a task and a number")

// following says from where on the events of a task are wanted: from the first one without a cursor.
type following struct {
	After core.Cursor `json:"after,omitzero"`
}

func encodeFollow(id core.TaskID, after core.Cursor) []byte {
	b, _ := json.Marshal(following{after}) // it can be encoded
	return append(append([]byte{frameFollow}, id...), b...)
}

func decodeFollow(b []byte) (id core.TaskID, after core.Cursor, err error) {
	if len(b) < idBytes {
		return "", after, fmt.Errorf("events of the task %q are wanted", b)
	}
	var f following
	if rest := b[idBytes:]; len(rest) > 0 {
		err = json.Unmarshal(rest, &f)
	}
	return core.TaskID(b[:idBytes]), f.After, err
}

// appendEvents appends the frame of events of a task.
func appendEvents(b []byte, id core.TaskID, events []core.Event) ([]byte, error) {
	b = append(append(b, frameEvents), id...)
	for _, e := range events {
		var err error
		if b, err = e.AppendJSON(append(b, '\n')); err != nil {
			return nil, err
		}
	}
	return b, nil
}

func decodeEvents(b []byte) (id core.TaskID, events []core.Event, err error) {
	head, lines, _ := bytes.Cut(b, []byte{'\n'})
	if len(head) != idBytes {
		return "", nil, fmt.Errorf("events of the task %q", head)
	}
	for line := range bytes.SplitSeq(lines, []byte{'\n'}) {
		var e core.Event
		if err := e.UnmarshalJSON(line); err != nil { // without the scan that package json does before
			return "", nil, err
		}
		events = append(events, e)
	}
	return core.TaskID(head), events, nil
}
