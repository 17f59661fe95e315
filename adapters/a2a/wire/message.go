package wire

import (
	"encoding/json"
	"strconv"
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

var messageObject = &object[Message]{func(m *Message) *json.RawMessage { return &m.Unknown }, []member[Message]{
	textAt("messageId", func(m *Message) *string { return &m.ID }),
	textAt("contextId", func(m *Message) *string { return &m.ContextID }),
	textAt("taskId", func(m *Message) *string { return &m.TaskID }),
	textAt("role", func(m *Message) *Role { return &m.Role }),
	listAt("parts", func(m *Message) *[]Part { return &m.Parts }, partObject),
	objectAt("metadata", func(m *Message) *json.RawMessage { return &m.Metadata }),
	textsAt("extensions", func(m *Message) *[]string { return &m.Extensions }),
	textsAt("referenceTaskIds", func(m *Message) *[]string { return &m.References }),
}}

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
		if p.Kind == 0 {
			return under("parts["+strconv.Itoa(i)+"]", wrong("a part without content: send exactly one of text, raw, url and data"))
		}
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) { return messageObject.append(nil, &m), nil }

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
