package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The priorities of the draft.
const (
	priorityNormal = "normal"
	priorityUrgent = "urgent"
)

// Request returns a query or a delegate as a request without To. The error is an *[Error]
// that says what to change.
func (e Envelope) Request(now time.Time) (core.Request, error) {
	if e.Kind == KindDelegate {
		return e.delegate(now)
	}
	return e.query(now)
}

func (e Envelope) query(now time.Time) (core.Request, error) {
	var in struct {
		Query
		Question strictjson.Value `json:"question"`
		Context  strictjson.Value `json:"context"`
	}
	if err := e.Read(&in); err != nil {
		return core.Request{}, err
	}
	r := core.Request{
		Intent: core.IntentAsk, Domain: in.Domain, MaxTokens: in.MaxTokens, Deadline: deadlineOf(now, in.DeadlineMS), ReportBack: true,
	}
	splitContext(in.Context, &r)
	text, isText := in.Question.Text()
	r.Content = text
	if !isText && !in.Question.Absent() {
		r.Content = string(onOneLine(in.Question.Raw()))
		if len(r.Data) == 0 {
			r.Data = in.Question.Clone()
		}
	}
	return r, nil
}

func (e Envelope) delegate(now time.Time) (core.Request, error) {
	var in struct {
		Delegate
		Context strictjson.Value `json:"context"`
	}
	if err := e.Read(&in); err != nil {
		return core.Request{}, err
	}
	r := core.Request{
		Intent: core.IntentDelegate, Content: in.Task, Domain: in.Domain, MaxTokens: in.MaxTokens,
		Deadline: deadlineOf(now, in.DeadlineMS), ReportBack: in.ReportBack == nil || *in.ReportBack,
	}
	if in.Priority == priorityUrgent {
		r.Priority = core.PriorityUrgent
	}
	splitContext(in.Context, &r)
	return r, nil
}

// Request returns the notify as a request without To.
func (n Notify) Request() core.Request {
	notice := &core.Notice{Topic: n.Topic, Data: n.Data}
	_ = notice.Importance.UnmarshalText([]byte(n.Importance)) // the schema has checked it
	return core.Request{Intent: core.IntentNotify, Notice: notice}
}

// QueryOf returns a request as a query.
func QueryOf(r core.Request, now time.Time) Query {
	q := Query{Domain: r.Domain, MaxTokens: r.MaxTokens, DeadlineMS: remainingMS(now, r.Deadline)}
	if isStructure(r.Data) && (r.Content == "" || r.Content == string(onOneLine(r.Data))) {
		q.Question, r.Data = r.Data, nil
	} else {
		q.Question = Marshal(questionText(r))
	}
	q.Context = joinContext(r)
	return q
}

// DelegateOf returns a request as a delegate. It always asks for a report: the hub wants the
// result even if the requester does not.
func DelegateOf(r core.Request, now time.Time) Delegate {
	yes := true
	d := Delegate{
		Task: questionText(r), Context: joinContext(r), Priority: priorityNormal, ReportBack: &yes,
		DeadlineMS: remainingMS(now, r.Deadline), Domain: r.Domain, MaxTokens: r.MaxTokens,
	}
	if r.Priority == core.PriorityUrgent {
		d.Priority = priorityUrgent
	}
	return d
}

// NotifyOf returns a notice as a notify.
func NotifyOf(n core.Notice) Notify {
	importance := cmp.Or(n.Importance, core.ImportanceLow)
	return Notify{Topic: n.Topic, Data: orNull(n.Data), Importance: importance.String()}
}

// questionText returns the text of a request, which is never empty.
func questionText(r core.Request) string {
	switch {
	case r.Content != "":
		return r.Content
	case len(r.Data) > 0:
		return string(onOneLine(r.Data))
	}
	return "see context.files"
}

// deadlineOf returns the deadline of a request that was sent now, or zero if it has none.
func deadlineOf(now time.Time, ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return now.Add(time.Duration(min(ms, most)) * time.Millisecond)
}

// remainingMS returns the time to a deadline in milliseconds, rounded up and at least 1, so
// that an agent does not give up before the hub does.
func remainingMS(now, deadline time.Time) int64 {
	if deadline.IsZero() {
		return 0
	}
	return max(1, (deadline.Sub(now) + time.Millisecond - 1).Milliseconds())
}

func orNull(data json.RawMessage) json.RawMessage {
	if len(data) == 0 {
		return json.RawMessage("null")
	}
	return data
}
