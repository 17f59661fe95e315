package wire

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// StatusUpdate tells that the state of a task changed (section 4.2.1).
type StatusUpdate struct {
	TaskID    string
	ContextID string
	Status    Status
	Metadata  json.RawMessage // an object, or nil
	Unknown   json.RawMessage
}

func (u *StatusUpdate) read(v strictjson.Value) error {
	if err := wantObject(v); err != nil {
		return err
	}
	var unknown rest
	for key, value := range v.Members() {
		var err error
		switch string(key) {
		case "taskId":
			err = textIn(value, &u.TaskID)
		case "contextId":
			err = textIn(value, &u.ContextID)
		case "status":
			if !value.Absent() {
				err = u.Status.read(value)
			}
		case "metadata":
			err = objectIn(value, &u.Metadata)
		default:
			if err := unknown.add(key, value, "taskId", "contextId", "status", "metadata"); err != nil {
				return err
			}
		}
		if err != nil {
			return under(string(key), err)
		}
	}
	u.Unknown = unknown.object()
	return nil
}

func (w *writer) statusUpdate(u StatusUpdate) {
	w.begin()
	w.some("taskId", u.TaskID)
	w.some("contextId", u.ContextID)
	w.status(u.Status)
	w.raw("metadata", u.Metadata)
	w.end(u.Unknown)
}

// ArtifactUpdate adds an artifact to a task, or parts to one (section 4.2.2). With Append the
// parts follow those that the artifact has; they are never joined.
type ArtifactUpdate struct {
	TaskID    string
	ContextID string
	Artifact  Artifact
	Append    bool
	LastChunk bool
	Metadata  json.RawMessage // an object, or nil
	Unknown   json.RawMessage
}

func (u *ArtifactUpdate) read(v strictjson.Value) error {
	if err := wantObject(v); err != nil {
		return err
	}
	var unknown rest
	for key, value := range v.Members() {
		var err error
		switch string(key) {
		case "taskId":
			err = textIn(value, &u.TaskID)
		case "contextId":
			err = textIn(value, &u.ContextID)
		case "artifact":
			if !value.Absent() {
				err = u.Artifact.read(value)
			}
		case "append":
			err = flagIn(value, &u.Append)
		case "lastChunk":
			err = flagIn(value, &u.LastChunk)
		case "metadata":
			err = objectIn(value, &u.Metadata)
		default:
			if err := unknown.add(key, value, "taskId", "contextId", "artifact", "append", "lastChunk", "metadata"); err != nil {
				return err
			}
		}
		if err != nil {
			return under(string(key), err)
		}
	}
	u.Unknown = unknown.object()
	return nil
}

func (w *writer) artifactUpdate(u ArtifactUpdate) {
	w.begin()
	w.some("taskId", u.TaskID)
	w.some("contextId", u.ContextID)
	w.key("artifact")
	w.artifact(u.Artifact)
	w.flag("append", u.Append)
	w.flag("lastChunk", u.LastChunk)
	w.raw("metadata", u.Metadata)
	w.end(u.Unknown)
}

// StreamResponse is an item of a stream, the answer to SendMessage, and the body of a push
// notification (section 3.2.3): exactly one of its four members. An item of a kind that is
// not known has none, and is whole in Unknown.
type StreamResponse struct {
	Task           *Task
	Message        *Message
	StatusUpdate   *StatusUpdate
	ArtifactUpdate *ArtifactUpdate
	Unknown        json.RawMessage
}

func (r *StreamResponse) read(v strictjson.Value) error {
	if err := wantObject(v); err != nil {
		return err
	}
	var unknown rest
	for key, value := range v.Members() {
		var err error
		switch string(key) {
		case "task":
			err = oneIn(value, &r.Task, (*Task).read)
		case "message":
			err = oneIn(value, &r.Message, (*Message).read)
		case "statusUpdate":
			err = oneIn(value, &r.StatusUpdate, (*StatusUpdate).read)
		case "artifactUpdate":
			err = oneIn(value, &r.ArtifactUpdate, (*ArtifactUpdate).read)
		default:
			if err := unknown.add(key, value, "task", "message", "statusUpdate", "artifactUpdate"); err != nil {
				return err
			}
		}
		if err != nil {
			return under(string(key), err)
		}
	}
	r.Unknown = unknown.object()
	return nil
}

func (r StreamResponse) check() error {
	n := 0
	var err error
	if r.Task != nil {
		n, err = n+1, under("task", r.Task.check())
	}
	if r.Message != nil && err == nil {
		n, err = n+1, under("message", r.Message.check())
	}
	if u := r.StatusUpdate; u != nil && err == nil {
		n++
		if err = u.Status.check(); u.TaskID == "" && err == nil {
			err = missing("taskId", "say which task")
		}
		err = under("statusUpdate", err)
	}
	if u := r.ArtifactUpdate; u != nil && err == nil {
		n++
		if err = under("artifact", u.Artifact.check()); u.TaskID == "" && err == nil {
			err = missing("taskId", "say which task")
		}
		err = under("artifactUpdate", err)
	}
	switch {
	case err != nil:
		return err
	case n > 1, n == 0 && r.Unknown == nil:
		return wrong("want exactly one of task, message, statusUpdate and artifactUpdate")
	}
	return nil
}

// ReadStreamResponse reads an item of a stream or the answer to SendMessage.
func ReadStreamResponse(v strictjson.Value) (StreamResponse, error) {
	var r StreamResponse
	if err := r.read(v); err != nil {
		return r, err
	}
	return r, r.check()
}

func (w *writer) streamResponse(r StreamResponse) {
	w.begin()
	if r.Task != nil {
		w.key("task")
		w.task(*r.Task)
	}
	if r.Message != nil {
		w.key("message")
		w.message(*r.Message)
	}
	if r.StatusUpdate != nil {
		w.key("statusUpdate")
		w.statusUpdate(*r.StatusUpdate)
	}
	if r.ArtifactUpdate != nil {
		w.key("artifactUpdate")
		w.artifactUpdate(*r.ArtifactUpdate)
	}
	w.end(r.Unknown)
}

// AppendJSON appends the item to b.
func (r StreamResponse) AppendJSON(b []byte) []byte {
	w := writer{b}
	w.streamResponse(r)
	return w.b
}

// MarshalJSON implements json.Marshaler.
func (r StreamResponse) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }
