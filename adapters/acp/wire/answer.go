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

// ResponseOf folds a task that is done into a response.
func ResponseOf(a core.Answer) Response {
	return Response{Data: orNull(joinFiles(a.Data, a.Files)), Summary: answerText(a), TokensUsed: a.TokensUsed, Truncated: a.Truncated}
}

// maxRepeatedData bounds the words that only repeat data.
const maxRepeatedData = 4 << 10

// answerText is what an answer says in words, never nothing: data alone is its compact
// JSON, cut where that is long, since it stands beside it whole.
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

// Bodies says the response in the words of the hub: its files, what it cost, and
// the end.
func (r Response) Bodies() []core.Body { return r.bodies(strictjson.ParseValid(r.Data)) }

func (r Response) bodies(data strictjson.Value) []core.Body {
	return answerBodies(r.Summary, data, r.TokensUsed, r.Truncated)
}

// Bodies says an answer, which is a response, a result, an error or an ack, in the words
// of the hub. The error is an *[Error] that says what to change.
func (e Envelope) Bodies() ([]core.Body, error) {
	switch e.Kind {
	case KindResponse:
		var in struct {
			Response
			Data strictjson.Value `json:"data"`
		}
		err := e.Read(&in)
		return in.bodies(in.Data), err
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

// FailureOf folds a task that has failed into an error, with what was answered
// before.
func FailureOf(a core.Answer) *Error {
	e := ErrorOf(a.Fault)
	e.Partial = PartialOf(a)
	return e
}

// WithoutContent returns the answer of a failed task without its content, which does not
// fit into an envelope. The fault says so.
func WithoutContent(a core.Answer) core.Answer {
	f := *a.Fault
	f.Message += fmt.Sprintf(" (what was answered before has %d bytes of text and %d files, and does not fit into an envelope; the extension %s has room)",
		len(a.Text), len(a.Files), ExtensionProgress)
	a.Fault, a.Text, a.Files = &f, Summary(a.Text), nil
	return a
}

// PartialOf says what was answered before a task failed; nil when that is nothing.
func PartialOf(a core.Answer) json.RawMessage {
	if a.Text == "" && len(a.Files) == 0 && a.TokensUsed == 0 {
		return nil
	}
	return Marshal(Partial{a.Text, joinFiles(nil, a.Files), a.TokensUsed})
}

// isStructure reports whether data is an object or an array, which nobody says in words.
func isStructure(data []byte) bool { return len(data) > 0 && (data[0] == '{' || data[0] == '[') }

// ResultOf folds a task that has ended into a result.
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

// Bodies says the result in the words of the hub.
func (r Result) Bodies() []core.Body { return r.bodies(strictjson.ParseValid(r.Data)) }

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
		text = "" // it repeats the error
	}
	return append(partialBodies(text, data, r.TokensUsed), EndOf(f))
}

// Bodies says the error in the words of the hub: what was answered before, and how
// the task ended.
func (e *Error) Bodies() []core.Body { return e.bodies(strictjson.ParseValid(e.Partial)) }

func (e *Error) bodies(partial strictjson.Value) []core.Body {
	var p struct {
		Partial
		Data strictjson.Value `json:"data"`
	}
	_ = partial.Decode(&p) // one of another form than ours says nothing
	return append(partialBodies(p.Summary, p.Data, p.TokensUsed), EndOf(e.Fault()))
}

// Body says the ack of a delegate in the words of the hub. A refusal is worth
// another try, elsewhere or later.
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

// answerBodies are the events that an answer in one piece stands for. What it cost is
// told as output: ACP does not say of what kind its tokens are.
func answerBodies(text string, data strictjson.Value, tokens int64, truncated bool) []core.Body {
	rest, out := splitAnswer(data, tokens)
	if isStructure(rest) && text == answerText(core.Answer{Data: rest}) {
		text = "" // the data alone, told twice
	}
	return append(out, core.Done{Text: text, Data: rest, Truncated: truncated, TokensUsed: tokens})
}

// partialBodies are the events that a failure tells of. Data becomes text: a failure has no
// other place for it.
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

// splitAnswer takes the files out of the data of an answer, and returns them with what
// it cost.
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

// EndOf returns the end of a task that a fault explains.
func EndOf(f *core.Fault) core.Body {
	if f.Code == core.CodeCancelled {
		return core.Cancelled{Reason: f.Message}
	}
	return core.Failed{Fault: f}
}
