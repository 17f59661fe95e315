package core

import (
	"encoding/json"
	"fmt"
	"time"
)

// eventJSON is the JSON form of an event. It is stable: members are added, never
// renamed or removed.
//
//	{"seq":3,"epoch":1,"at":"2026-01-02T03:04:05.6Z","kind":"text","body":{"text":"hello"}}
//
// Only merged text has "merged", and only events with foreign fields "foreign".
type eventJSON struct {
	Seq     uint64          `json:"seq"`
	Merged  *Merged         `json:"merged,omitempty"`
	Epoch   uint32          `json:"epoch,omitempty"`
	At      time.Time       `json:"at"`
	Kind    string          `json:"kind"`
	Body    json.RawMessage `json:"body"`
	Foreign *Foreign        `json:"foreign,omitempty"`
}

// UnmarshalJSON reads the JSON form. An unknown kind is an unknown_kind Fault; a missing body
// and cuts that do not fit the text are invalid Faults.
func (e *Event) UnmarshalJSON(b []byte) error {
	if e.readWritten(b) {
		return nil
	}
	var j eventJSON
	if err := json.Unmarshal(b, &j); err != nil {
		return err
	}
	k, ok := ParseKind(j.Kind)
	if !ok {
		return NewFault(CodeUnknownKind, "unknown kind of event %q", j.Kind)
	}
	body, err := readBody(k, j.Body)
	if err != nil {
		return fmt.Errorf("event %d of kind %s: %w", j.Seq, j.Kind, err)
	}
	if !j.Merged.fits(j.Seq, body) {
		return NewFault(CodeInvalid, "event %d of kind %s: the cuts are not places in its text, in order", j.Seq, j.Kind)
	}
	*e = Event{Seq: j.Seq, Merged: j.Merged, Epoch: j.Epoch, At: j.At, Body: body, Foreign: j.Foreign}
	return nil
}

var bodyReaders = [...]func([]byte) (Body, error){
	KindOpened:            readAs[Opened],
	KindAssigned:          readAs[Assigned],
	KindAccepted:          readAs[Accepted],
	KindSessionStarted:    readAs[SessionStarted],
	KindSessionLost:       readAs[SessionLost],
	KindThinking:          readAs[Thinking],
	KindText:              readAs[Text],
	KindToolCall:          readAs[ToolCall],
	KindToolState:         readAs[ToolState],
	KindToolResult:        readAs[ToolResult],
	KindApprovalRequested: readAs[ApprovalRequested],
	KindApprovalDecided:   readAs[ApprovalDecided],
	KindQuestionAsked:     readAs[QuestionAsked],
	KindQuestionAnswered:  readAs[QuestionAnswered],
	KindInjected:          readAs[Injected],
	KindInjectionAnswered: readAs[InjectionAnswered],
	KindFile:              readAs[File],
	KindUsage:             readAs[Usage],
	KindRetrying:          readAs[Retrying],
	KindCancelRequested:   readAs[CancelRequested],
	KindForeign:           readAs[ForeignFrame],
	KindDone:              readAs[Done],
	KindFailed:            readAs[Failed],
	KindCancelled:         readAs[Cancelled],
}

func readBody(k Kind, b []byte) (Body, error) { return bodyReaders[k](b) }

func readAs[B Body](b []byte) (Body, error) {
	var body B
	if len(b) == 0 || string(b) == "null" {
		return nil, NewFault(CodeInvalid, "the body is missing")
	}
	err := json.Unmarshal(b, &body)
	return body, err
}
