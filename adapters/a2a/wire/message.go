package wire

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Role is who sent a message.
type Role string

// The roles.
const (
	RoleUser  Role = "ROLE_USER"
	RoleAgent Role = "ROLE_AGENT"
)

// Message is one turn of a conversation (section 4.1.4).
type Message struct {
	ID         string // messageId, chosen by the sender
	Role       Role
	Parts      []Part
	ContextID  string
	TaskID     string
	Metadata   json.RawMessage // an object, or nil
	Extensions []string
	References []string // referenceTaskIds
	Unknown    json.RawMessage
}

var messageMembers = members[Message]{
	{"messageId", func(m *Message, v strictjson.Value) error { return textIn(v, &m.ID) }},
	{"role", func(m *Message, v strictjson.Value) error { return textIn(v, (*string)(&m.Role)) }},
	{"parts", func(m *Message, v strictjson.Value) error { return listIn(v, &m.Parts, (*Part).read) }},
	{"contextId", func(m *Message, v strictjson.Value) error { return textIn(v, &m.ContextID) }},
	{"taskId", func(m *Message, v strictjson.Value) error { return textIn(v, &m.TaskID) }},
	{"metadata", func(m *Message, v strictjson.Value) error { return objectIn(v, &m.Metadata) }},
	{"extensions", func(m *Message, v strictjson.Value) error { return textsIn(v, &m.Extensions) }},
	{"referenceTaskIds", func(m *Message, v strictjson.Value) error { return textsIn(v, &m.References) }},
}

func (m *Message) read(v strictjson.Value) (err error) {
	m.Unknown, err = messageMembers.read(v, m)
	return err
}

func (m Message) check() error {
	switch {
	case m.ID == "":
		return missing("messageId", "choose an id for the message")
	case m.Role != RoleUser && m.Role != RoleAgent:
		return under("role", wrong("want %s or %s, got %.40q", RoleUser, RoleAgent, m.Role))
	case len(m.Parts) == 0:
		return missing("parts", "send at least one part")
	}
	return checkParts(m.Parts)
}

func checkParts(parts []Part) error {
	for i, p := range parts {
		if err := p.check(); err != nil {
			return under("parts["+strconv.Itoa(i)+"]", err)
		}
	}
	return nil
}

func (w *writer) parts(parts []Part) { list(w, "parts", parts, (*writer).part) }

func (w *writer) message(m Message) {
	w.begin()
	w.some("messageId", m.ID)
	w.some("contextId", m.ContextID)
	w.some("taskId", m.TaskID)
	w.some("role", string(m.Role))
	if m.Parts != nil {
		w.parts(m.Parts)
	}
	w.raw("metadata", m.Metadata)
	w.texts("extensions", m.Extensions)
	w.texts("referenceTaskIds", m.References)
	w.end(m.Unknown)
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return marshal(func(w *writer) { w.message(m) }) }

// Text returns the text parts of a message or an artifact, joined.
func Text(parts []Part) string {
	if len(parts) == 1 && parts[0].Kind == PartText {
		return parts[0].Text
	}
	var b []byte
	for _, p := range parts {
		if p.Kind == PartText {
			b = append(b, p.Text...)
		}
	}
	return string(b)
}
