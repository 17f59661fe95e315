package core

import (
	"cmp"
	"strconv"
	"strings"
	"time"
)

// Stage is the progress of a request. The zero Stage is unset.
type Stage uint8

// The stages of a Receipt (promise P4). Each proves only what its comment says.
const (
	_                 Stage = iota
	StageAccepted           // the hub has it in memory; lost if the hub is killed
	StageDelivered          // the agent's transport accepted it; lost if the agent is killed
	StageAcknowledged       // the agent confirmed it
	StageRecorded           // the journal has it; survives what its sync policy says
	StageRefused            // it was refused, for the reason in the Fault
	StageExpired            // its deadline passed before it was done
)

var stages = names{"", "accepted", "delivered", "acknowledged", "recorded", "refused", "expired"}

// String returns the name of the stage in JSON.
func (s Stage) String() string { return stages.name(uint8(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s Stage) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Stage) UnmarshalText(b []byte) error { return stages.parse((*uint8)(s), b, "stage") }

// Receipt states the progress of a request.
type Receipt struct {
	Task  TaskID `json:"task"`
	Stage Stage  `json:"stage"`
	// Agent is the agent that has it, from delivered on.
	Agent AgentID   `json:"agent,omitempty"`
	At    time.Time `json:"at"`
	// Fault is why it was refused or expired.
	Fault *Fault `json:"fault,omitempty"`
}

// Cursor is a position in a task: everything up to and including Seq was read. It is opaque
// to peers, and not valid for another task. The zero Cursor is the beginning.
type Cursor struct {
	Epoch uint32
	Seq   uint64
}

// Compare compares two positions in a task. What a hub says after it took the task over is of a later
// epoch, and may have numbers that were used in the epoch before, in what was lost.
func (c Cursor) Compare(d Cursor) int {
	return cmp.Or(cmp.Compare(c.Epoch, d.Epoch), cmp.Compare(c.Seq, d.Seq))
}

// String returns the text form that peers send back.
func (c Cursor) String() string {
	return strconv.FormatUint(uint64(c.Epoch), 10) + "." + strconv.FormatUint(c.Seq, 10)
}

// ParseCursor reads the text form; an empty text is the zero Cursor. It returns
// an invalid Fault for anything else.
func ParseCursor(text string) (Cursor, error) {
	if text == "" {
		return Cursor{}, nil
	}
	epoch, seq, ok := strings.Cut(text, ".")
	e, err1 := strconv.ParseUint(epoch, 10, 32)
	s, err2 := strconv.ParseUint(seq, 10, 64)
	if !ok || err1 != nil || err2 != nil {
		return Cursor{}, NewFault(CodeInvalid, "%s is not a cursor: send one that this hub gave, such as the id of the last event", quote(text))
	}
	return Cursor{Epoch: uint32(e), Seq: s}, nil
}

// MarshalText implements encoding.TextMarshaler.
func (c Cursor) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Cursor) UnmarshalText(b []byte) error {
	p, err := ParseCursor(string(b))
	if err != nil {
		return err
	}
	*c = p
	return nil
}
