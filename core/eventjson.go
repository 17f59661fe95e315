package core

import (
	"bytes"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// eventJSON is the JSON form of an event. It is stable: members are added, never
// renamed or removed.
//
//	{"seq":3,"epoch":1,"at":"2026-01-02T03:04:05.6Z","kind":"text","body":{"text":"hello"}}
//
// Only merged text has "merged", and only events with foreign fields "foreign".
type eventJSON struct {
	Seq     uint64           `json:"seq"`
	Merged  *Merged          `json:"merged"`
	Epoch   uint32           `json:"epoch"`
	At      time.Time        `json:"at"`
	Kind    string           `json:"kind"`
	Body    strictjson.Value `json:"body"`
	Foreign *Foreign         `json:"foreign"`
}

// UnmarshalJSON reads the JSON form, in one pass: hubs of a cluster read the events of each other's
// tasks all the time. An unknown kind is an unknown_kind Fault; a body that cannot be read and cuts
// that do not fit the text are invalid Faults. JSON within an event may be what the strict reader
// would refuse: it is what a peer said.
func (e *Event) UnmarshalJSON(b []byte) error {
	if !utf8.Valid(b) {
		b = bytes.ToValidUTF8(b, []byte(string(utf8.RuneError)))
	}
	var j eventJSON
	if err := strictjson.ParseValid(b).Decode(&j); err != nil {
		return err
	}
	k, ok := ParseKind(j.Kind)
	if !ok {
		return NewFault(CodeUnknownKind, "unknown kind of event %q", j.Kind)
	}
	if j.Body.Absent() {
		return NewFault(CodeInvalid, "event %d of kind %s: the body is missing", j.Seq, j.Kind)
	}
	body, err := bodyReaders[k](j.Body)
	if err != nil {
		return NewFault(CodeInvalid, "event %d of kind %s: %s", j.Seq, j.Kind, err)
	}
	if !j.Merged.fits(j.Seq, body) {
		return NewFault(CodeInvalid, "event %d of kind %s: the cuts are not places in its text, in order", j.Seq, j.Kind)
	}
	*e = Event{Seq: j.Seq, Merged: j.Merged, Epoch: j.Epoch, At: j.At, Body: body, Foreign: j.Foreign}
	return nil
}

var bodyReaders = [...]func(strictjson.Value) (Body, error){
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

func readAs[B Body](v strictjson.Value) (Body, error) {
	var body B
	err := v.Decode(&body)
	return body, err
}
