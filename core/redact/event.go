package redact

import (
	"bytes"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
)

// Event returns an event without what is redacted; pieces of text each for itself. Ids, names
// of agents and tools, and numbers stay. The event is not changed, and shares memory with the
// result.
func (r *Redactor) Event(e core.Event) core.Event {
	if r == nil {
		return e
	}
	e.Foreign = r.foreign(e.Foreign)
	if e.Merged == nil { // else it is text that was redacted in its pieces
		e.Body = r.body(e.Body)
	}
	return e
}

func (r *Redactor) body(body core.Body) core.Body {
	switch b := body.(type) {
	case core.Opened:
		b.Request = r.Request(b.Request)
		return b
	case core.SessionStarted:
		return core.SessionStarted{Session: r.Text(b.Session)}
	case core.SessionLost:
		return core.SessionLost{Reason: r.Text(b.Reason)}
	case core.Thinking:
		return core.Thinking{Text: r.Text(b.Text)}
	case core.Text:
		return core.Text{Text: r.Text(b.Text)}
	case core.ToolCall:
		b.Input = r.json(b.Input)
		return b
	case core.ToolState:
		b.Detail = r.Text(b.Detail)
		return b
	case core.ToolResult:
		b.Output = r.json(b.Output)
		return b
	case core.ApprovalRequested:
		b.Input = r.json(b.Input)
		return b
	case core.ApprovalDecided:
		b.Reason, b.Option = r.Text(b.Reason), r.Text(b.Option)
		return b
	case core.QuestionAsked:
		b.Text, b.Header, b.Options = r.Text(b.Text), r.Text(b.Header), slices.Clone(b.Options)
		for i, o := range b.Options {
			b.Options[i] = core.Option{Label: r.Text(o.Label), Description: r.Text(o.Description)}
		}
		return b
	case core.QuestionAnswered:
		b.Text, b.Content, b.Selected = r.Text(b.Text), r.JSON(b.Content), slices.Clone(b.Selected)
		for i, label := range b.Selected {
			b.Selected[i] = r.Text(label)
		}
		return b
	case core.Injected:
		b.Content, b.Claimed = r.Text(b.Content), r.Text(b.Claimed)
		return b
	case core.InjectionAnswered:
		b.Reason = r.Text(b.Reason)
		return b
	case core.File:
		return r.file(b)
	case core.Usage:
		b.Model = r.Text(b.Model)
		return b
	case core.Retrying:
		b.Fault = r.Fault(b.Fault)
		return b
	case core.CancelRequested:
		b.Reason = r.Text(b.Reason)
		return b
	case core.ForeignFrame:
		b.Name = r.Text(b.Name)
		return b
	case core.Done:
		b.Text, b.Data = r.Text(b.Text), r.JSON(b.Data)
		return b
	case core.Failed:
		return core.Failed{Fault: r.Fault(b.Fault)}
	case core.Cancelled:
		return core.Cancelled{Reason: r.Text(b.Reason)}
	}
	return body
}

// IsMarked reports whether something was taken out of a request or, if a Mark was there before, may
// have been.
func IsMarked(q core.Request) bool {
	text, err := core.Event{Body: core.Opened{Request: q}}.AppendJSON(nil)
	if err != nil || bytes.Contains(text, []byte(Mark)) {
		return true
	}
	// Bytes are not readable in JSON, and of a short match only the beginning of the Mark fits.
	const begin = len("[re")
	return q.Foreign != nil && bytes.Contains(q.Foreign.Wire, []byte(Mark[:begin])) ||
		slices.ContainsFunc(q.Attachments, func(f core.File) bool { return bytes.Contains(f.Data, []byte(Mark)) })
}

// Request returns a request without what is redacted. It is not changed, and shares memory with the result.
func (r *Redactor) Request(q core.Request) core.Request {
	if r == nil {
		return q
	}
	q.Content, q.Data, q.Context, q.Foreign = r.Text(q.Content), r.JSON(q.Data), r.JSON(q.Context), r.foreign(q.Foreign)
	if len(q.Attachments) > 0 {
		q.Attachments = slices.Clone(q.Attachments)
		for i, f := range q.Attachments {
			q.Attachments[i] = r.file(f)
		}
	}
	if len(q.History) > 0 {
		q.History = slices.Clone(q.History)
		for i, t := range q.History {
			q.History[i] = r.Turn(t)
		}
	}
	if q.Notice != nil {
		n := *q.Notice
		n.Data = r.JSON(n.Data)
		q.Notice = &n
	}
	return q
}

// Turn returns a turn of a conversation without what is redacted.
func (r *Redactor) Turn(t core.Turn) core.Turn {
	if text := r.Text(t.Text); text != t.Text {
		t.Text, t.Written = text, nil
	}
	return t
}

// Receipt returns a receipt without what is redacted.
func (r *Redactor) Receipt(p core.Receipt) core.Receipt {
	p.Fault = r.Fault(p.Fault)
	return p
}

// Input returns the input of a tool call without what is redacted.
func (r *Redactor) Input(raw string) string {
	if r == nil {
		return raw
	}
	return r.json(raw)
}

func (r *Redactor) file(f core.File) core.File {
	f.Name, f.MediaType, f.Data = r.Text(f.Name), r.Text(f.MediaType), r.bytes(f.Data, false)
	return f
}

// Fault returns why something failed without what is redacted. It is not changed; nil stays nil.
func (r *Redactor) Fault(f *core.Fault) *core.Fault {
	if r == nil || f == nil {
		return f
	}
	clean := *f
	clean.Message, clean.PeerCode = r.Text(f.Message), r.Text(f.PeerCode)
	if clean.Message == f.Message && clean.PeerCode == f.PeerCode {
		return f
	}
	return &clean
}

func (r *Redactor) foreign(f *core.Foreign) *core.Foreign {
	if f == nil {
		return nil
	}
	return &core.Foreign{Dialect: f.Dialect, JSON: r.JSON(f.JSON), Wire: r.bytes(f.Wire, true)}
}
