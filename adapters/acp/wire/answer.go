package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// ResponseOf returns the answer of a done task as a response.
func ResponseOf(a core.Answer) Response {
	return Response{Data: orNull(joinFiles(a.Data, a.Files)), Summary: answerText(a), TokensUsed: a.TokensUsed, Truncated: a.Truncated}
}

// maxRepeatedData bounds a text that only repeats data.
const maxRepeatedData = 4 << 10

// answerText returns the text of an answer, which is never empty: without one it is the
// data on one line, shortened if long, since the envelope has the data anyway.
func answerText(a core.Answer) string {
	var compact bytes.Buffer
	switch {
	case a.Text != "":
		return a.Text
	case len(a.Data) > 0 && json.Compact(&compact, a.Data) == nil && compact.Len() > maxRepeatedData:
		return Summary(compact.String())
	case compact.Len() > 0:
		return compact.String()
	}
	return "done"
}

// Bodies returns the events that an answer stands for, the last of which is its end or, for
// an accepting ack, core.Accepted. The envelope is a response, a result, an error or an
// ack. The error is an *[Error] that says what to change.
func (e Envelope) Bodies() ([]core.Body, error) {
	switch e.Kind {
	case KindResponse:
		var in struct {
			Response
			Data strictjson.Value `json:"data"`
		}
		err := e.Read(&in)
		return answerBodies(in.Summary, in.Data, in.TokensUsed, in.Truncated), err
	case KindResult:
		var in struct {
			Result
			Data strictjson.Value `json:"data"`
		}
		err := e.Read(&in)
		return in.bodies(in.Data), err
	case KindError:
		var in struct {
			Error
			Partial strictjson.Value `json:"partial"`
		}
		err := e.Read(&in)
		return in.bodies(in.Partial), err
	case KindAck:
		var a Ack
		err := e.Read(&a)
		return []core.Body{a.Body()}, err
	}
	return nil, Refusef(CodeInvalidEnvelope, "%s is no answer", e.Kind)
}

// FailureOf returns the answer of a failed task as an error, with the partial answer.
func FailureOf(a core.Answer) *Error {
	e := ErrorOf(a.Fault)
	e.Partial = PartialOf(a)
	return e
}

// WithoutContent returns the answer of a failed task without its content, which does not
// fit into an envelope. The message of the fault says so.
func WithoutContent(a core.Answer) core.Answer {
	f := *a.Fault
	f.Message += fmt.Sprintf(" (what was answered before has %d bytes of text and %d files, and does not fit into an envelope; the extension %s has room)",
		len(a.Text), len(a.Files), ExtensionProgress)
	a.Fault, a.Text, a.Files = &f, Summary(a.Text), nil
	return a
}

// PartialOf returns the partial answer of a failed task, or nil if there is none.
func PartialOf(a core.Answer) json.RawMessage {
	if a.Text == "" && len(a.Files) == 0 && a.TokensUsed == 0 {
		return nil
	}
	return Marshal(Partial{a.Text, joinFiles(nil, a.Files), a.TokensUsed})
}

// isStructure reports whether data is an object or an array.
func isStructure(data []byte) bool { return len(data) > 0 && (data[0] == '{' || data[0] == '[') }

// ResultOf returns the answer of an ended task as a result.
func ResultOf(a core.Answer) Result {
	r := Result{Status: StatusCompleted, Outcome: answerText(a), Data: joinFiles(a.Data, a.Files), TokensUsed: a.TokensUsed}
	switch {
	case a.Fault != nil:
		why := resultError(a.Fault)
		r.Status, r.Error, r.Outcome = StatusFailed, &why, cmp.Or(a.Text, a.Fault.Message, StatusFailed)
	case a.Truncated:
		r.Status = StatusPartial
	}
	return r
}

func (r Result) bodies(data strictjson.Value) []core.Body {
	if r.Status != StatusFailed {
		return answerBodies(r.Outcome, data, r.TokensUsed, r.Status == StatusPartial)
	}
	why := r.Outcome
	if r.Error != nil && *r.Error != "" {
		why = *r.Error
	}
	f := resultFault(cmp.Or(why, "the agent failed without saying why"))
	text := r.Outcome
	if text == why || text == f.Message {
		text = "" // the outcome repeats the error
	}
	return append(partialBodies(text, data, r.TokensUsed), EndOf(f))
}

func (e *Error) bodies(partial strictjson.Value) []core.Body {
	var p struct {
		Partial
		Data strictjson.Value `json:"data"`
	}
	_ = partial.Decode(&p) // a value of another form is ignored
	return append(partialBodies(p.Summary, p.Data, p.TokensUsed), EndOf(e.Fault()))
}

// Body returns the event that the ack of a delegate stands for. A refusal is retryable.
func (a Ack) Body() core.Body {
	if a.Accepted {
		return core.Accepted{Estimate: milliseconds(a.EstimatedMS)}
	}
	f := core.NewFault(core.CodeOverloaded, "the agent refused the task")
	if a.Reason != "" {
		f.Message += ": " + a.Reason
	}
	return core.Failed{Fault: f}
}

// answerBodies returns the events that an answer in one piece stands for. Its tokens count
// as output, since ACP does not distinguish kinds.
func answerBodies(text string, data strictjson.Value, tokens int64, truncated bool) []core.Body {
	rest, out := splitAnswer(data, tokens)
	if isStructure(rest) && text == answerText(core.Answer{Data: rest}) {
		text = "" // it only repeats the data
	}
	return append(out, core.Done{Text: text, Data: rest, Truncated: truncated, TokensUsed: tokens})
}

// partialBodies returns the events of a partial answer. Data becomes text, since a failure
// has no other place for it.
func partialBodies(text string, data strictjson.Value, tokens int64) []core.Body {
	rest, out := splitAnswer(data, tokens)
	if len(rest) > 0 {
		text = strings.TrimPrefix(text+"\n"+string(onOneLine(rest)), "\n")
	}
	if text != "" {
		out = append(out, core.Text{Text: text})
	}
	return out
}

// splitAnswer returns the data of an answer without its files, and the events of the files
// and the tokens.
func splitAnswer(data strictjson.Value, tokens int64) (rest []byte, out []core.Body) {
	rest, files := splitFiles(data)
	for _, f := range files {
		out = append(out, f)
	}
	if tokens > 0 {
		out = append(out, core.Usage{Output: tokens})
	}
	return rest, out
}

// LastOf returns the kind and the payload of the envelope that ends a query, or a delegate,
// with an answer. The result of a delegate names its task.
func LastOf(kind Kind, req core.Request, a core.Answer) (Kind, json.RawMessage) {
	switch {
	case kind == KindDelegate:
		r := ResultOf(a)
		r.TaskRef = Brief(req)
		return KindResult, Marshal(r)
	case a.Fault != nil:
		return KindError, Marshal(FailureOf(a))
	}
	return KindResponse, Marshal(ResponseOf(a))
}

// EndOf returns the end of a task with a fault.
func EndOf(f *core.Fault) core.Body {
	if f.Code == core.CodeCancelled {
		return core.Cancelled{Reason: f.Message}
	}
	return core.Failed{Fault: f}
}
