package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// turn is an earlier turn of the conversation, in the form of language model APIs.
type turn struct {
	Role      string `json:"role"`
	Content   string `json:"content"`
	Agent     string `json:"agent,omitempty"`
	TaskID    string `json:"taskId,omitempty"`
	Timestamp string `json:"timestamp,omitempty"`
}

type noticeInput struct {
	Topic      string          `json:"topic"`
	Importance string          `json:"importance,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// inputMembers are the members of an input that the hub knows.
var inputMembers = []string{"content", "data", "attachments", "history", "context", "notice"}

// encodeInput returns the input of a request: its content and the members of its data,
// or the whole data as one member if it is no object or has a member of inputMembers.
func encodeInput(r core.Request) (json.RawMessage, error) {
	parts := map[string]any{"content": r.Content}
	if len(r.Attachments) > 0 {
		parts["attachments"] = wireFiles(r.Attachments)
	}
	if len(r.History) > 0 {
		parts["history"] = json.RawMessage(append(appendTurns([]byte("["), r.History), ']'))
	}
	if len(r.Context) > 0 {
		parts["context"] = r.Context
	}
	if r.Notice != nil {
		parts["notice"] = noticeInput{r.Notice.Topic, r.Notice.Importance.String(), r.Notice.Data}
	}
	if len(r.Data) > 0 {
		var ms Members
		known := func(name string) bool { return ms[name] != nil }
		if json.Unmarshal(r.Data, &ms) != nil || len(ms) == 0 || slices.ContainsFunc(inputMembers, known) {
			parts["data"] = r.Data
		} else {
			for name, v := range ms {
				parts[name] = v
			}
		}
	}
	return strictjson.Marshal(parts)
}

// readInput reads an input into a request: it is the inverse of [encodeInput]. It takes a string as
// the content. A member with a known name in another form stays in the data.
func readInput(input strictjson.Value, r *core.Request) error {
	if text, ok := input.Text(); ok {
		r.Content = text
		return nil
	}
	if input.Kind() != strictjson.Object {
		r.Data = input.Clone()
		return nil
	}
	rest := Members{}
	for key, value := range input.Members() {
		known := false
		switch string(key) {
		case "content":
			r.Content, known = value.Text()
		case "attachments":
			r.Attachments, known = filesOf(value)
		case "history":
			r.History, known = historyOf(value)
		case "context":
			if known = value.Kind() == strictjson.Object; known {
				r.Context = value.Clone() // it may be small, and the message large
			}
		case "notice":
			r.Notice, known = noticeOf(value)
		}
		if !known {
			rest[string(key)] = value.Raw()
		}
	}
	switch data, whole := rest["data"]; {
	case len(rest) == 0:
	case whole && len(rest) == 1:
		r.Data = bytes.Clone(data)
	default:
		var err error
		if r.Data, err = strictjson.Marshal(rest); err != nil {
			return err
		}
	}
	return nil
}

func appendTurns(b []byte, history []core.Turn) []byte {
	return core.WriteTurns(b, history, Dialect, encodeTurn)
}

func encodeTurn(t core.Turn) []byte {
	out := turn{Role: t.Role.String(), Content: t.Text, Agent: string(t.Agent), TaskID: string(t.Task)}
	if !t.At.IsZero() {
		out.Timestamp = t.At.UTC().Format(time.RFC3339Nano)
	}
	text := strictjson.Encode(out)
	return text
}

// WithHistory adds the earlier turns to the input of an encoded task message that has
// none. In a long conversation they are most of the message; this copies their encoded
// form instead of encoding them for each message.
func WithHistory(frame []byte, history []core.Turn) []byte {
	if len(history) == 0 {
		return frame
	}
	const ends = "}}}" // of the input, the payload and the message
	size := len(frame) + len(`,"history":[]`)
	for _, t := range history {
		size += t.Size() + len(t.Text)/16 + 64
	}
	out := append(make([]byte, 0, size), frame[:len(frame)-len(ends)]...)
	out = appendTurns(append(out, `,"history":[`...), history)
	return append(append(out, ']'), ends...)
}

// historyOf reads an array of turns, and reports whether the value is exactly that.
func historyOf(v strictjson.Value) ([]core.Turn, bool) {
	var turns []turn
	if v.DecodeKnown(&turns) != nil || len(turns) == 0 {
		return nil, false
	}
	history := make([]core.Turn, len(turns))
	for i, t := range turns {
		history[i] = core.Turn{Text: t.Content, Agent: core.AgentID(t.Agent), Task: core.TaskID(t.TaskID)}
		if history[i].Role.UnmarshalText([]byte(t.Role)) != nil || t.Role == "" {
			return nil, false
		}
		if t.Timestamp != "" {
			at, err := time.Parse(time.RFC3339Nano, t.Timestamp)
			if err != nil {
				return nil, false
			}
			history[i].At = at
		}
	}
	return history, true
}

// noticeOf reads a notice, and reports whether the value is exactly that.
func noticeOf(v strictjson.Value) (*core.Notice, bool) {
	var n *noticeInput
	if v.DecodeKnown(&n) != nil || n == nil || n.Topic == "" {
		return nil, false
	}
	notice := &core.Notice{Topic: n.Topic, Data: n.Data}
	if notice.Importance.UnmarshalText([]byte(n.Importance)) != nil {
		return nil, false
	}
	return notice, true
}
