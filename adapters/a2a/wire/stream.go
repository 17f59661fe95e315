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

var statusUpdateObject = &object[StatusUpdate]{func(u *StatusUpdate) *json.RawMessage { return &u.Unknown }, []member[StatusUpdate]{
	textAt("taskId", func(u *StatusUpdate) *string { return &u.TaskID }),
	textAt("contextId", func(u *StatusUpdate) *string { return &u.ContextID }),
	valueAt("status", func(u *StatusUpdate) *Status { return &u.Status }, statusObject),
	objectAt("metadata", func(u *StatusUpdate) *json.RawMessage { return &u.Metadata }),
}}

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

var artifactUpdateObject = &object[ArtifactUpdate]{func(u *ArtifactUpdate) *json.RawMessage { return &u.Unknown }, []member[ArtifactUpdate]{
	textAt("taskId", func(u *ArtifactUpdate) *string { return &u.TaskID }),
	textAt("contextId", func(u *ArtifactUpdate) *string { return &u.ContextID }),
	valueAt("artifact", func(u *ArtifactUpdate) *Artifact { return &u.Artifact }, artifactObject),
	flagAt("append", func(u *ArtifactUpdate) *bool { return &u.Append }),
	flagAt("lastChunk", func(u *ArtifactUpdate) *bool { return &u.LastChunk }),
	objectAt("metadata", func(u *ArtifactUpdate) *json.RawMessage { return &u.Metadata }),
}}

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

var streamObject = &object[StreamResponse]{func(r *StreamResponse) *json.RawMessage { return &r.Unknown }, []member[StreamResponse]{
	oneAt("task", func(r *StreamResponse) **Task { return &r.Task }, taskObject),
	oneAt("message", func(r *StreamResponse) **Message { return &r.Message }, messageObject),
	oneAt("statusUpdate", func(r *StreamResponse) **StatusUpdate { return &r.StatusUpdate }, statusUpdateObject),
	spared(oneAt("artifactUpdate", func(r *StreamResponse) **ArtifactUpdate { return &r.ArtifactUpdate }, artifactUpdateObject)),
}}

// spared is the update of an artifact, read into spare memory if there is some.
func spared(m member[StreamResponse]) member[StreamResponse] {
	read := m.read
	m.read = func(r *StreamResponse, v strictjson.Value) error {
		if r.spare == nil || v.Absent() {
			return read(r, v)
		}
		u := r.spare
		*u = ArtifactUpdate{Artifact: Artifact{Parts: u.Artifact.Parts[:0]}}
		err := artifactUpdateObject.read(u, v)
		if err == nil {
			r.ArtifactUpdate = u
		}
		return err
	}
	return m
}

// ItemReader reads the items of a stream, one after the other. It uses the memory of an update
// of an artifact, which most items are, again for the next one. The zero ItemReader is ready.
type ItemReader struct{ update ArtifactUpdate }

// Read reads an item of a stream or the answer to SendMessage. The ArtifactUpdate is valid until the next call.
func (i *ItemReader) Read(v strictjson.Value) (StreamResponse, error) {
	r := StreamResponse{spare: &i.update}
	err := streamObject.read(&r, v)
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

// AppendJSON appends the item to b.
func (r *StreamResponse) AppendJSON(b []byte) []byte { return streamObject.append(b, r) }

// MarshalJSON implements json.Marshaler.
func (r StreamResponse) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }
