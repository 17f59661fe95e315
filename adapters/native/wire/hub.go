package wire

import (
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Hello is the first frame of the hub.
type Hello struct {
	Native    int            `json:"native"`
	Hub       string         `json:"hub"`
	Version   string         `json:"version"`
	Principal core.Principal `json:"principal"`
	// Agent is the id with which the peer joins; "" if it may choose.
	Agent  core.AgentID `json:"agent,omitempty"`
	Limits Limits       `json:"limits"`
}

// Limits are what the hub takes.
type Limits struct {
	FrameBytes int `json:"frame_bytes"`
}

// Gap says which sequence numbers of a task, or how many notices, are no longer kept.
type Gap struct {
	Task core.TaskID `json:"task,omitempty"`
	Role string      `json:"role"`
	Call string      `json:"call,omitempty"`
	From uint64      `json:"from"`
	To   uint64      `json:"to"`
	// After says instead that tasks after this one may be missing.
	After core.TaskID `json:"after,omitempty"`
}

// Told is an event of a task as the hub tells it.
type Told struct {
	Head
	Cursor core.Cursor
	Event  core.Event
}

// DecodeHub reads a frame of the hub: the name of its kind, and its value. Frames of kinds that
// are not known are read too.
func DecodeHub(raw []byte) (kind string, v strictjson.Value, err error) {
	root, err := strictjson.Parse(raw, strictjson.Limits{Bytes: len(raw)})
	if err != nil {
		return "", strictjson.Value{}, err
	}
	for key, member := range root.Members() {
		return string(key), member, nil
	}
	return "", strictjson.Value{}, core.NewFault(core.CodeInvalid, "a frame is an object with a member")
}

// ReadTold reads the value of an event of the hub.
func ReadTold(v strictjson.Value) (t Told, err error) {
	var merged bool
	p, err := split(v, func(key string, member strictjson.Value) error {
		switch key {
		case "role":
			t.Role, _ = member.Text()
		case "position":
			t.Position, _ = member.Text()
		case "call":
			t.Call, _ = member.Text()
		case "cursor":
			return member.Decode(&t.Cursor)
		case "seq":
			return member.Decode(&t.Event.Seq)
		case "epoch":
			return member.Decode(&t.Event.Epoch)
		case "at":
			return member.Decode(&t.Event.At)
		case "merged":
			merged = !member.Absent()
		}
		return nil
	})
	if err != nil {
		return t, err
	}
	t.Task = core.TaskID(p.task)
	if merged {
		if err := v.Decode(&t.Event); err != nil { // checks the cuts
			return t, err
		}
	}
	t.Event.Body, t.Event.Foreign, err = p.understand()
	return t, err
}
