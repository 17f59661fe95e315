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

var statusMembers = members[Status]{
	{"state", func(s *Status, v strictjson.Value) error { return textIn(v, (*string)(&s.State)) }},
	{"message", func(s *Status, v strictjson.Value) error { return oneIn(v, &s.Message, (*Message).read) }},
	{"timestamp", func(s *Status, v strictjson.Value) error { return timeIn(v, &s.At) }},
}

func (s *Status) read(v strictjson.Value) (err error) {
	s.Unknown, err = statusMembers.read(v, s)
	return err
}

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

func (w *writer) status(s Status) {
	w.key("status")
	w.begin()
	w.some("state", string(s.State))
	if s.Message != nil {
		w.key("message")
		w.message(*s.Message)
	}
	w.time("timestamp", s.At)
	w.end(s.Unknown)
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

var artifactMembers = members[Artifact]{
	{"artifactId", func(a *Artifact, v strictjson.Value) error { return textIn(v, &a.ID) }},
	{"name", func(a *Artifact, v strictjson.Value) error { return textIn(v, &a.Name) }},
	{"description", func(a *Artifact, v strictjson.Value) error { return textIn(v, &a.Description) }},
	{"parts", func(a *Artifact, v strictjson.Value) error { return listIn(v, &a.Parts, (*Part).read) }},
	{"metadata", func(a *Artifact, v strictjson.Value) error { return objectIn(v, &a.Metadata) }},
	{"extensions", func(a *Artifact, v strictjson.Value) error { return textsIn(v, &a.Extensions) }},
}

func (a *Artifact) read(v strictjson.Value) (err error) {
	a.Unknown, err = artifactMembers.read(v, a)
	return err
}

// check accepts an artifact without parts: a last chunk may have nothing to add.
func (a Artifact) check() error {
	if a.ID == "" {
		return missing("artifactId", "name the artifact")
	}
	return checkParts(a.Parts)
}

func (w *writer) artifact(a Artifact) {
	w.begin()
	w.some("artifactId", a.ID)
	w.some("name", a.Name)
	w.some("description", a.Description)
	w.parts(a.Parts)
	w.raw("metadata", a.Metadata)
	w.texts("extensions", a.Extensions)
	w.end(a.Unknown)
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

var taskMembers = members[Task]{
	{"id", func(t *Task, v strictjson.Value) error { return textIn(v, &t.ID) }},
	{"contextId", func(t *Task, v strictjson.Value) error { return textIn(v, &t.ContextID) }},
	{"status", func(t *Task, v strictjson.Value) error { return valueIn(v, &t.Status, (*Status).read) }},
	{"artifacts", func(t *Task, v strictjson.Value) error { return listIn(v, &t.Artifacts, (*Artifact).read) }},
	{"history", func(t *Task, v strictjson.Value) error { return listIn(v, &t.History, (*Message).read) }},
	{"metadata", func(t *Task, v strictjson.Value) error { return objectIn(v, &t.Metadata) }},
}

func (t *Task) read(v strictjson.Value) (err error) {
	t.Unknown, err = taskMembers.read(v, t)
	return err
}

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

func (w *writer) task(t Task) {
	w.begin()
	w.some("id", t.ID)
	w.some("contextId", t.ContextID)
	w.status(t.Status)
	if len(t.Artifacts) > 0 {
		list(w, "artifacts", t.Artifacts, (*writer).artifact)
	}
	if len(t.History) > 0 {
		list(w, "history", t.History, (*writer).message)
	}
	w.raw("metadata", t.Metadata)
	w.end(t.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (t Task) MarshalJSON() ([]byte, error) { return marshal(func(w *writer) { w.task(t) }) }

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
	if err := t.read(v); err != nil {
		return t, err
	}
	return t, t.check()
}
