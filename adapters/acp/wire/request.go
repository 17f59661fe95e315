package wire

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// priorityUrgent is the one priority that the draft has beside normal.
const (
	priorityNormal = "normal"
	priorityUrgent = "urgent"
)

// Request says a query or a delegate in the words of the hub. To is left open. The
// error is an *[Error] that says what to change.
func (e Envelope) Request(now time.Time) (core.Request, error) {
	if e.Kind == KindDelegate {
		var in struct {
			Delegate
			Context strictjson.Value `json:"context"`
		}
		err := e.Read(&in)
		return in.request(now, in.Context), err
	}
	var in struct {
		Query
		Question strictjson.Value `json:"question"`
		Context  strictjson.Value `json:"context"`
	}
	err := e.Read(&in)
	return in.request(now, in.Question, in.Context), err
}

// Request says the query in the words of the hub. To is left open.
func (q Query) Request(now time.Time) core.Request {
	return q.request(now, strictjson.ParseValid(q.Question), strictjson.ParseValid(q.Context))
}

func (q Query) request(now time.Time, question, context strictjson.Value) core.Request {
	r := core.Request{
		Intent: core.IntentAsk, Domain: q.Domain, MaxTokens: q.MaxTokens, Deadline: deadlineOf(now, q.DeadlineMS), ReportBack: true,
	}
	splitContext(context, &r)
	text, isText := question.Text()
	r.Content = text
	if !isText && !question.Absent() {
		r.Content = string(onOneLine(question.Raw()))
		if len(r.Data) == 0 {
			r.Data = question.Clone()
		}
	}
	return r
}

// Request says the delegate in the words of the hub. To is left open.
func (d Delegate) Request(now time.Time) core.Request {
	return d.request(now, strictjson.ParseValid(d.Context))
}

func (d Delegate) request(now time.Time, context strictjson.Value) core.Request {
	r := core.Request{
		Intent: core.IntentDelegate, Content: d.Task, Domain: d.Domain, MaxTokens: d.MaxTokens,
		Deadline: deadlineOf(now, d.DeadlineMS), ReportBack: d.Reports(),
	}
	if d.Priority == priorityUrgent {
		r.Priority = core.PriorityUrgent
	}
	splitContext(context, &r)
	return r
}

// Request says the notify in the words of the hub. To is left open.
func (n Notify) Request() core.Request {
	notice := &core.Notice{Topic: n.Topic, Data: n.Data}
	_ = notice.Importance.UnmarshalText([]byte(n.Importance)) // the schema has seen it
	return core.Request{Intent: core.IntentNotify, Notice: notice}
}

// QueryOf says a request as a query.
func QueryOf(r core.Request, now time.Time) Query {
	q := Query{Domain: r.Domain, MaxTokens: r.MaxTokens, DeadlineMS: remainingMS(now, r.Deadline)}
	if isStructured(r) {
		q.Question, r.Data = r.Data, nil
	} else {
		q.Question = Marshal(questionText(r))
	}
	q.Context = joinContext(r)
	return q
}

// DelegateOf says a request as a delegate. The hub always wants to know what came
// of it; whether its requester does is between those two.
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

// NotifyOf says a notice as a notify.
func NotifyOf(n core.Notice) Notify {
	importance := cmp.Or(n.Importance, core.ImportanceLow)
	return Notify{Topic: n.Topic, Data: orNull(n.Data), Importance: importance.String()}
}

// isStructured reports whether a request is a question in a structure, which the
// draft allows: one that says its data and nothing else.
func isStructured(r core.Request) bool {
	if !isStructure(r.Data) {
		return false
	}
	return r.Content == "" || r.Content == string(onOneLine(r.Data))
}

// questionText is what a request says in words, never nothing.
func questionText(r core.Request) string {
	switch {
	case r.Content != "":
		return r.Content
	case len(r.Data) > 0:
		return string(onOneLine(r.Data))
	}
	return "see context.files"
}

// deadlineOf is when a request that was sent now is too late; zero when its sender
// did not say.
func deadlineOf(now time.Time, ms int64) time.Time {
	if ms <= 0 {
		return time.Time{}
	}
	const most = int64(365 * 24 * time.Hour / time.Millisecond)
	return now.Add(time.Duration(min(ms, most)) * time.Millisecond)
}

// remainingMS is how long a deadline is away, in milliseconds begun, at least 1: the
// end of the time is the hub's to tell, so its agents do not give up before it.
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
