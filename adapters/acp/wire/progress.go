package wire

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// A progress envelope, our extension, is one event of a task before its end. Its ref is the
// query or delegate; its payload has "seq", which grows, and one member named for the kind
// of event: "text" and "thinking" are texts, "accepted" is an estimate in milliseconds, all
// others are the JSON form of the event's body, except that the input of a tool is a JSON
// value ("input_text" if it is not JSON).
//
//	{"seq":3,"text":"Three swim"}
//	{"seq":4,"tool_call":{"id":"t1","name":"calendar","input":{"week":7}}}

// memberSeq is the number of an event.
const memberSeq = "seq"

// ProgressOf returns an event as the payload of a progress envelope.
func ProgressOf(seq uint64, body core.Body) json.RawMessage {
	var value []byte
	switch b := body.(type) {
	case core.Text:
		value = appendText(nil, b.Text)
	case core.Thinking:
		value = appendText(nil, b.Text)
	case core.Accepted:
		value = strconv.AppendInt(nil, b.Estimate.Milliseconds(), 10)
	case core.ToolCall:
		value = callOf(b)
	case core.ApprovalRequested:
		value = callOf(core.ToolCall{ID: b.ID, Name: b.Name, Input: b.Input})
	case core.File:
		value = Marshal(filesOf([]core.File{b})[0])
	default:
		value = Marshal(b)
	}
	out := make([]byte, 0, len(value)+48)
	out = append(out, `{"seq":`...)
	out = strconv.AppendUint(out, seq, 10)
	out = append(out, ',')
	out = appendText(out, body.Kind().String())
	out = append(out, ':')
	out = append(out, value...)
	return append(out, '}')
}

// Progress returns the number and the event of a progress envelope. The error is an *[Error]
// that says what to change.
func (e Envelope) Progress() (seq uint64, body core.Body, err error) {
	for written, value := range e.Content().Members() {
		key := string(written)
		if key == memberSeq {
			if value.Decode(&seq) != nil {
				return 0, nil, Refusef(CodeInvalidEnvelope, "payload of progress: seq is a number from 0")
			}
			continue
		}
		if name := strings.ToLower(key); name != key && (name == memberSeq || progressReaders[kindNamed(name)] != nil) {
			return 0, nil, Refusef(CodeInvalidEnvelope, "payload of progress: %s", misspelled(key, name))
		}
		read := progressReaders[kindNamed(key)]
		if read == nil || body != nil {
			continue // an unknown member, or a second one
		}
		if body, err = read(value); err != nil {
			return 0, nil, Refusef(CodeInvalidEnvelope, "payload of progress: %s: %s", key, err)
		}
	}
	if body == nil {
		return 0, nil, Refusef(CodeInvalidEnvelope, `payload of progress says nothing known: send {"seq":1,"text":"..."}, or thinking, tool_call, tool_state, tool_result, file or usage`)
	}
	return seq, body, nil
}

// progressReaders are the kinds that progress can carry, and how each is read. The ends have
// envelopes of their own, and events of the hub alone are not sent.
var progressReaders = map[core.Kind]func(strictjson.Value) (core.Body, error){
	core.KindText:           readAs(func(text string) core.Body { return core.Text{Text: text} }),
	core.KindThinking:       readAs(func(text string) core.Body { return core.Thinking{Text: text} }),
	core.KindAccepted:       readAs(func(ms int64) core.Body { return core.Accepted{Estimate: milliseconds(ms)} }),
	core.KindSessionStarted: readBody[core.SessionStarted],
	core.KindSessionLost:    readBody[core.SessionLost],
	core.KindToolCall:       readAs(func(c call) core.Body { return c.body() }),
	core.KindToolState:      readBody[core.ToolState],
	core.KindToolResult:     readBody[core.ToolResult],
	core.KindApprovalRequested: readAs(func(c call) core.Body {
		b := c.body()
		return core.ApprovalRequested{ID: b.ID, Name: b.Name, Input: b.Input}
	}),
	core.KindApprovalDecided:   readBody[core.ApprovalDecided],
	core.KindQuestionAsked:     readBody[core.QuestionAsked],
	core.KindQuestionAnswered:  readBody[core.QuestionAnswered],
	core.KindInjected:          readBody[core.Injected],
	core.KindInjectionAnswered: readBody[core.InjectionAnswered],
	core.KindFile:              readBody[core.File],
	core.KindUsage:             readBody[core.Usage],
	core.KindRetrying:          readBody[core.Retrying],
	core.KindForeign:           readBody[core.ForeignFrame],
}

// CanProgress reports whether progress can carry an event of the kind.
func CanProgress(k core.Kind) bool { return progressReaders[k] != nil }

// Omitted returns the payload of progress that replaces an event that is too large.
func Omitted(seq uint64, kind core.Kind, bytes int) json.RawMessage {
	return Marshal(map[string]any{memberSeq: seq, "omitted": kind.String(), "bytes": bytes})
}

// kindNamed returns the kind of a member of progress, or zero.
func kindNamed(key string) core.Kind {
	kind, _ := core.ParseKind(key)
	return kind
}

func readBody[B core.Body](value strictjson.Value) (core.Body, error) {
	var body B
	err := value.Decode(&body)
	return body, err
}

// readAs reads a body whose form in progress is another type.
func readAs[T any](body func(T) core.Body) func(strictjson.Value) (core.Body, error) {
	return func(value strictjson.Value) (core.Body, error) {
		var v T
		err := value.Decode(&v)
		return body(v), err
	}
}

// call is a tool call in progress.
type call struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input,omitempty"`
	InputText string          `json:"input_text,omitempty"`
}

func callOf(b core.ToolCall) []byte {
	c := call{ID: b.ID, Name: b.Name}
	if strictjson.Check([]byte(b.Input), strictjson.Limits{Depth: envelopeDepth - 4}) != nil {
		c.InputText = b.Input
		return Marshal(c)
	}
	return SetMembers(Marshal(c), Field{Key: "input", Value: json.RawMessage(b.Input)})
}

func (c call) body() core.ToolCall {
	input := string(c.Input)
	if input == "" || c.InputText != "" {
		input = c.InputText
	}
	return core.ToolCall{ID: c.ID, Name: c.Name, Input: input}
}

// milliseconds returns a duration that a peer stated, within bounds.
func milliseconds(ms int64) time.Duration {
	return time.Duration(max(0, min(ms, 1<<40))) * time.Millisecond
}
