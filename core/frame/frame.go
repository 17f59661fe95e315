package frame

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Direction is the way of a frame, as the hub sees it.
type Direction string

// The directions.
const (
	In  Direction = "in"
	Out Direction = "out"
)

// Became is one event or command that a frame is in the hub.
type Became struct {
	// Kind is a kind of event, or the name of a command that is no event.
	Kind string `json:"kind"`
	// Disposition is how the dialect translates it (the name of a [core.Handling]), or "refused"
	// if the hub refused it.
	Disposition string `json:"disposition"`
	// Seq is the number of the event in its task, by which the frames of both sides that say the
	// same are found; zero for a command, and for an event that was refused.
	Seq uint64 `json:"seq,omitempty"`
	// Until is the number of the last event, if there are several that follow on each other; else zero.
	Until uint64 `json:"until,omitempty"`
}

// Frame is a frame of a task.
type Frame struct {
	// At is when it was received, or queued to be sent.
	At        time.Time `json:"at"`
	Dialect   string    `json:"dialect"`
	Direction Direction `json:"direction"`
	// Connection names the connection within its hub.
	Connection string `json:"connection"`
	// Hub is the name of the hub that has the connection; "" for the one that is asked.
	Hub string `json:"hub,omitempty"`
	// Frame is JSON as on the wire, a text for what is no JSON, and null if there is none: for an
	// event that the dialect cannot say.
	Frame json.RawMessage `json:"frame"`
	// Became is empty for an answer of the hub to a frame of the task.
	Became []Became `json:"became"`
	// Tasks are all that it belongs to, and those whose content it repeats, such as earlier turns.
	Tasks []core.TaskID `json:"-"`
	// Private says that it may show what only the agent of the task may see.
	Private bool `json:"-"`
}

// note is what a message became, in one task.
type note struct {
	task core.TaskID
	// agent says that the connection is the agent of the task, else its requester or a reader.
	agent   bool
	kind    core.Kind // zero for a command that is no event
	seq     uint64    // of the event; zero if that is not known
	end     uint64    // of the last one that it was merged from
	name    string    // of the command
	refused bool
	// private says that the message may show what only the agent of the task may see, and shows are other
	// tasks whose content it repeats.
	private bool
	shows   *[]core.TaskID
}

// shownOf returns what a note shows of earlier turns, which a request repeats; nil for nothing.
func shownOf(earlier []core.Turn) *[]core.TaskID {
	var all []core.TaskID
	for _, t := range earlier {
		if t.Task != "" && !slices.Contains(all, t.Task) {
			all = append(all, t.Task)
		}
	}
	if all == nil {
		return nil
	}
	return &all
}

// tasks returns the tasks of a note.
func (n note) tasks() []core.TaskID {
	if n.shows == nil {
		return []core.TaskID{n.task}
	}
	return append([]core.TaskID{n.task}, *n.shows...)
}

// disposition returns how a dialect handles what a note says.
func (b *Book) disposition(dialect string, d Direction, n note) core.Handling {
	t := b.translations[dialect]
	table := t.ToRequester
	switch {
	case n.refused:
		return core.Refused
	case n.kind == 0:
		return core.Native
	case d == In && n.agent:
		table = t.FromAgent
	case d == In:
		table = t.FromRequester
	case n.agent:
		table = t.ToAgent
	}
	if how := table[n.kind].How; how != 0 && (how != core.Internal || d == Out) {
		return how
	}
	return core.Native // it has come, whoever the table expects it from
}

// became returns what the notes of one task say, each once; texts that follow on each other as one.
func (b *Book) became(dialect string, d Direction, notes []note, task core.TaskID) []Became {
	all := []Became{}
	seen := map[Became]bool{}
	for _, n := range notes {
		if n.task != task || n.kind == 0 && n.name == "" {
			continue
		}
		is := Became{Kind: n.name, Disposition: b.disposition(dialect, d, n).String(), Seq: n.seq}
		if n.kind != 0 {
			is.Kind = n.kind.String()
		}
		if n.end > n.seq {
			is.Until = n.end
		}
		if last := len(all) - 1; last >= 0 && n.seq > 0 && all[last].Kind == is.Kind && all[last].Disposition == is.Disposition && max(all[last].Seq, all[last].Until)+1 == n.seq {
			all[last].Until = max(n.seq, n.end)
			continue
		}
		if !seen[is] {
			seen[is] = true
			all = append(all, is)
		}
	}
	return all
}

// asJSON returns a message as JSON: as it is, or as a text.
func asJSON(message []byte) json.RawMessage {
	switch {
	case message == nil:
		return json.RawMessage("null")
	case strictjson.Check(message, strictjson.Limits{}) == nil:
		return message
	}
	return strictjson.AppendString(nil, strings.ToValidUTF8(string(message), "\uFFFD"))
}
