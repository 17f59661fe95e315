package wire

import (
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// State is the state of a task (section 4.1.3), by its name.
type State string

// The states.
const (
	StateSubmitted     State = "TASK_STATE_SUBMITTED"
	StateWorking       State = "TASK_STATE_WORKING"
	StateCompleted     State = "TASK_STATE_COMPLETED"
	StateFailed        State = "TASK_STATE_FAILED"
	StateCanceled      State = "TASK_STATE_CANCELED"
	StateInputRequired State = "TASK_STATE_INPUT_REQUIRED"
	StateRejected      State = "TASK_STATE_REJECTED"
	StateAuthRequired  State = "TASK_STATE_AUTH_REQUIRED"
)

// States lists every state.
var States = []State{
	StateSubmitted, StateWorking, StateCompleted, StateFailed, StateCanceled, StateInputRequired, StateRejected, StateAuthRequired,
}

// Known reports whether the state is one of version 1.0.
func (s State) Known() bool { return slices.Contains(States, s) }

// Terminal reports whether nothing follows the state.
func (s State) Terminal() bool {
	return s == StateCompleted || s == StateFailed || s == StateCanceled || s == StateRejected
}

// Status is the state of a task with what the agent says about it (section 4.1.2).
type Status struct {
	State   State
	Message *Message
	At      time.Time // timestamp
	Unknown json.RawMessage
}

var statusObject = &object[Status]{func(s *Status) *json.RawMessage { return &s.Unknown }, []member[Status]{
	textAt("state", func(s *Status) *State { return &s.State }),
	oneAt("message", func(s *Status) **Message { return &s.Message }, messageObject),
	timeAt("timestamp", func(s *Status) *time.Time { return &s.At }),
}}

func (s Status) check() error {
	if s.State == "" {
		return under("status", missing("state", "say in which state the task is"))
	}
	if s.Message != nil {
		if err := s.Message.check(); err != nil {
			return under("status", under("message", err))
		}
	}
	return nil
}

// Artifact is a result of a task (section 4.1.7).
type Artifact struct {
	ID          string // artifactId
	Name        string
	Description string
	Parts       []Part
	Metadata    json.RawMessage // an object, or nil
	Extensions  []string
	Unknown     json.RawMessage
}

var artifactObject = &object[Artifact]{func(a *Artifact) *json.RawMessage { return &a.Unknown }, []member[Artifact]{
	textAt("artifactId", func(a *Artifact) *string { return &a.ID }),
	textAt("name", func(a *Artifact) *string { return &a.Name }),
	textAt("description", func(a *Artifact) *string { return &a.Description }),
	partsAt(func(a *Artifact) *[]Part { return &a.Parts }),
	objectAt("metadata", func(a *Artifact) *json.RawMessage { return &a.Metadata }),
	textsAt("extensions", func(a *Artifact) *[]string { return &a.Extensions }),
}}

// partsAt are the parts of an artifact, which are always written.
func partsAt(at func(*Artifact) *[]Part) member[Artifact] {
	m := listAt("parts", at, partObject)
	m.write = func(w *strictjson.Writer, a *Artifact) { list(w, "parts", *at(a), partObject.write) }
	return m
}

// check accepts an artifact without parts: a last chunk may have nothing to add.
func (a Artifact) check() error {
	if a.ID == "" {
		return missing("artifactId", "name the artifact")
	}
	return checkParts(a.Parts)
}

// Task is a unit of work (section 4.1.1).
type Task struct {
	ID        string
	ContextID string
	Status    Status
	Artifacts []Artifact
	History   []Message
	Metadata  json.RawMessage // an object, or nil
	Unknown   json.RawMessage
}

var taskObject = &object[Task]{func(t *Task) *json.RawMessage { return &t.Unknown }, []member[Task]{
	textAt("id", func(t *Task) *string { return &t.ID }),
	textAt("contextId", func(t *Task) *string { return &t.ContextID }),
	valueAt("status", func(t *Task) *Status { return &t.Status }, statusObject),
	listAt("artifacts", func(t *Task) *[]Artifact { return &t.Artifacts }, artifactObject),
	listAt("history", func(t *Task) *[]Message { return &t.History }, messageObject),
	objectAt("metadata", func(t *Task) *json.RawMessage { return &t.Metadata }),
}}

func (t Task) check() error {
	if t.ID == "" {
		return missing("id", "name the task")
	}
	for i, a := range t.Artifacts {
		if err := a.check(); err != nil {
			return under("artifacts["+strconv.Itoa(i)+"]", err)
		}
	}
	return t.Status.check()
}

// MarshalJSON implements json.Marshaler.
func (t Task) MarshalJSON() ([]byte, error) { return taskObject.append(nil, &t), nil }

// UnmarshalJSON implements json.Unmarshaler, strictly.
func (t *Task) UnmarshalJSON(text []byte) error {
	v, err := Parse(text)
	if err != nil {
		return err
	}
	*t, err = ReadTask(v)
	return err
}

// ReadTask reads a task, such as the result of GetTask.
func ReadTask(v strictjson.Value) (Task, error) {
	var t Task
	if err := taskObject.read(&t, v); err != nil {
		return t, err
	}
	return t, t.check()
}
