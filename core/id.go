package core

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"
)

// TaskID names a task: a UUID of version 7, so that ids sort by time.
type TaskID string

// Begun returns the time in the id, to the millisecond, and whether it has one.
func (id TaskID) Begun() (time.Time, bool) {
	u, err := uuid.Parse(string(id))
	if err != nil || u.Version() != 7 {
		return time.Time{}, false
	}
	return time.Unix(u.Time().UnixTime()), true
}

// Bytes returns the 16 bytes of the UUID; zeros for what is none.
func (id TaskID) Bytes() [16]byte {
	u, err := uuid.Parse(string(id))
	if err != nil {
		return [16]byte{}
	}
	return u
}

// TaskIDOf returns the task whose [TaskID.Bytes] these are; "" for zeros.
func TaskIDOf(b [16]byte) TaskID {
	if b == [16]byte{} {
		return ""
	}
	return TaskID(uuid.UUID(b).String())
}

// AgentID is the name that an agent gives itself, unique on the hub across dialects.
type AgentID string

// ThreadID names a conversation.
type ThreadID string

// Check returns an invalid Fault if the name is longer than [MaxIDBytes].
func (id ThreadID) Check() error {
	if len(id) > MaxIDBytes {
		return NewFault(CodeInvalid, "the name of the thread has %d bytes: use at most %d", len(id), MaxIDBytes)
	}
	return nil
}

// NewID returns a fresh UUID of version 7 as text.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// MaxIDBytes bounds the ids that peers choose: of agents, threads and tool calls.
const MaxIDBytes = 512

// CheckAgentID returns an invalid Fault that says what to change if id cannot be the id of
// an agent: it is no name, as [CheckName] says, or has a comma, which separates the ids of an [Address].
func CheckAgentID(id AgentID) error {
	if strings.Contains(string(id), idSeparator) {
		return NewFault(CodeInvalid, "the agent id %s has a comma, which separates the ids of an address: choose another", quote(string(id)))
	}
	return CheckName(string(id))
}

// CheckName returns an invalid Fault that says what to change if s cannot be the name of an agent or a principal:
// it is empty, longer than [MaxIDBytes], has control characters or line breaks, is written like an [Address] that
// is no id, or could be taken for another name: see [lookalike].
func CheckName(s string) error {
	switch {
	case s == "":
		return NewFault(CodeInvalid, "the agent id is empty: choose one")
	case len(s) > MaxIDBytes:
		return NewFault(CodeInvalid, "the agent id has %d bytes: use at most %d", len(s), MaxIDBytes)
	case !utf8.ValidString(s):
		return NewFault(CodeInvalid, "the agent id is not UTF-8")
	case strings.ContainsFunc(s, breaksLine):
		return NewFault(CodeInvalid, "the agent id has control characters: remove them")
	case strings.TrimSpace(s) != s:
		return NewFault(CodeInvalid, "the agent id begins or ends with blanks: remove them")
	case s == anyText || strings.EqualFold(s, hubText) || hasPrefixFold(s, capabilityPrefix) || hasPrefixFold(s, domainPrefix):
		return NewFault(CodeInvalid, "the agent id %q is reserved for addresses: choose another", s)
	}
	if why := lookalike(s); why != "" {
		return NewFault(CodeInvalid, "the agent id %+q %s", s, why)
	}
	return nil
}

func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// breaksLine reports whether a rune ends a line or controls a terminal. Unicode does not
// count its line and paragraph separators as control characters.
func breaksLine(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
