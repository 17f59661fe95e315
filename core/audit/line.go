package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/policy"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Line is one line of the audit. Members may be added, and are never renamed or removed.
type Line struct {
	// Seq counts the lines from 1.
	Seq uint64    `json:"seq"`
	At  time.Time `json:"at"`
	// Principal is who acted; "" if nobody proved to be anybody, or if it was the hub.
	Principal string `json:"principal"`
	// Act is the name of a [core.Act], or one of the acts of this package.
	Act string `json:"act"`
	// Object is what it was about: the id of a task, an agent, a question or a pack, the name
	// of a tool, whom a request was addressed to, or where a connection came from.
	Object string `json:"object"`
	// Task is the task that a request opened.
	Task core.TaskID `json:"task,omitempty"`
	// For is the principal on whose behalf a request was sent.
	For string `json:"for,omitempty"`
	// Approved is what was decided on a tool call, which Call names.
	Approved *bool  `json:"approved,omitempty"`
	Call     string `json:"call,omitempty"`
	// Count is how many entries the line stands for, if not one.
	Count uint64 `json:"count,omitempty"`
	// Outcome is ok, or the code of the Fault.
	Outcome string `json:"outcome"`
	// Prev is the hash of the line before.
	Prev string `json:"prev"`
}

// The acts that are no commands.
const (
	ActConnect = "connect" // somebody came in, or was refused
	ActStart   = "start"   // the hub started
	ActStop    = "stop"    // the hub stopped, and everything before is written
	ActMissing = "missing" // entries could not be written; without Count nobody knows how many
)

// OK is the outcome of what was not refused.
const OK = "ok"

// maxName bounds each text of a line, in bytes: names of tools and agents that do not exist
// come from whoever calls.
const maxName = 512

// lineOf returns the line of an entry, without its place in the chain.
func (l *Log) lineOf(e policy.Entry) Line {
	name := func(text string) string { return name(l.opts.Redact(text)) } // callers choose these names
	line := Line{
		At: e.At, Principal: name(e.Call.Principal.ID), Act: e.Call.Command.Act().String(), Object: name(e.Call.Command.Object()),
		Task: e.Task, Outcome: outcome(e.Err),
	}
	switch c := e.Call.Command.(type) {
	case *core.Open:
		line.For = name(c.For.ID)
	case core.Decide:
		approved := c.Decision.Approved
		line.Approved, line.Call = &approved, name(c.Decision.ID)
	}
	return line
}

// outcome returns OK or the code of the Fault that the error is.
func outcome(err error) string {
	if err == nil {
		return OK
	}
	return string(core.AsFault(err).Code)
}

// name returns a name in a bounded form that shares no memory with a longer text.
func name(text string) string {
	if len(text) > maxName {
		cut := maxName
		for cut > 0 && !utf8.RuneStart(text[cut]) {
			cut--
		}
		text = text[:cut] + "…"
	}
	return strings.Clone(text)
}

// size estimates what the line costs in the queue.
func (l Line) size() int {
	const fixed = 256
	return fixed + len(l.Principal) + len(l.Object) + len(l.Task) + len(l.For) + len(l.Call)
}

// text returns the line as it is hashed and stored, without a line feed: what encoding/json
// writes, without reflection.
func (l Line) text() []byte {
	at := l.At.UTC().Truncate(time.Microsecond)
	if y := at.Year(); y < 0 || y > 9999 { // JSON has no form for it
		at = time.Time{}
	}
	w := strictjson.Writer{B: append(make([]byte, 0, l.size()), '{'), Standard: true}
	w.Count("seq", l.Seq)
	w.Time("at", at)
	w.Text("principal", l.Principal)
	w.Text("act", l.Act)
	w.Text("object", l.Object)
	w.Some("task", string(l.Task))
	w.Some("for", l.For)
	if l.Approved != nil {
		w.Bool("approved", *l.Approved)
	}
	w.Some("call", l.Call)
	if l.Count > 0 {
		w.Count("count", l.Count)
	}
	w.Text("outcome", l.Outcome)
	w.Text("prev", l.Prev)
	w.End()
	return w.B
}

// hash is the SHA-256 of a line.
type hash [sha256.Size]byte

func hashOf(line []byte) hash { return sha256.Sum256(line) }

// String returns the hash as lines have it.
func (h hash) String() string { return hex.EncodeToString(h[:]) }
