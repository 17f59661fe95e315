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

var statusUpdateMembers = members[StatusUpdate]{
	{"taskId", func(u *StatusUpdate, v strictjson.Value) error { return textIn(v, &u.TaskID) }},
	{"contextId", func(u *StatusUpdate, v strictjson.Value) error { return textIn(v, &u.ContextID) }},
	{"status", func(u *StatusUpdate, v strictjson.Value) error { return valueIn(v, &u.Status, (*Status).read) }},
	{"metadata", func(u *StatusUpdate, v strictjson.Value) error { return objectIn(v, &u.Metadata) }},
}

func (u *StatusUpdate) read(v strictjson.Value) (err error) {
	u.Unknown, err = statusUpdateMembers.read(v, u)
	return err
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

var artifactUpdateMembers = members[ArtifactUpdate]{
	{"taskId", func(u *ArtifactUpdate, v strictjson.Value) error { return textIn(v, &u.TaskID) }},
	{"contextId", func(u *ArtifactUpdate, v strictjson.Value) error { return textIn(v, &u.ContextID) }},
	{"artifact", func(u *ArtifactUpdate, v strictjson.Value) error { return valueIn(v, &u.Artifact, (*Artifact).read) }},
	{"append", func(u *ArtifactUpdate, v strictjson.Value) error { return flagIn(v, &u.Append) }},
	{"lastChunk", func(u *ArtifactUpdate, v strictjson.Value) error { return flagIn(v, &u.LastChunk) }},
	{"metadata", func(u *ArtifactUpdate, v strictjson.Value) error { return objectIn(v, &u.Metadata) }},
}

func (u *ArtifactUpdate) read(v strictjson.Value) (err error) {
	u.Unknown, err = artifactUpdateMembers.read(v, u)
	return err
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

	spare *ArtifactUpdate // memory for ArtifactUpdate; nil for new memory
}

var streamResponseMembers = members[StreamResponse]{
	{"task", func(r *StreamResponse, v strictjson.Value) error { return oneIn(v, &r.Task, (*Task).read) }},
	{"message", func(r *StreamResponse, v strictjson.Value) error { return oneIn(v, &r.Message, (*Message).read) }},
	{"statusUpdate", func(r *StreamResponse, v strictjson.Value) error {
		return oneIn(v, &r.StatusUpdate, (*StatusUpdate).read)
	}},
	{"artifactUpdate", func(r *StreamResponse, v strictjson.Value) error {
		return r.readArtifactUpdate(v)
	}},
}

func (r *StreamResponse) read(v strictjson.Value) (err error) {
	r.Unknown, err = streamResponseMembers.read(v, r)
	return err
}

func (r *StreamResponse) readArtifactUpdate(v strictjson.Value) error {
	if r.spare == nil || v.Absent() {
		return oneIn(v, &r.ArtifactUpdate, (*ArtifactUpdate).read)
	}
	u := r.spare
	*u = ArtifactUpdate{Artifact: Artifact{Parts: u.Artifact.Parts[:0]}}
	if err := u.read(v); err != nil {
		return err
	}
	r.ArtifactUpdate = u
	return nil
}

// ItemReader reads the items of a stream, one after the other. It uses the memory of an update
// of an artifact, which most items are, again for the next one. The zero ItemReader is ready.
type ItemReader struct{ update ArtifactUpdate }

// Read is [ReadStreamResponse]. The ArtifactUpdate is valid until the next call.
func (i *ItemReader) Read(v strictjson.Value) (StreamResponse, error) {
	r := StreamResponse{spare: &i.update}
	err := r.read(v)
	if r.spare = nil; err != nil {
		return r, err
	}
	return r, r.check()
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
