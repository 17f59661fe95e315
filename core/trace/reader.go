package trace

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
)

// The bounds of the spans of one task. What is beyond is counted in an attribute.
const (
	maxSpans    = 256
	maxMoments  = 128
	maxLinks    = 128
	maxContent  = 16 << 10                      // bytes of one attribute
	maxClean    = maxContent + redact.LongMatch // what is redacted of a text, so that none of a secret is left before the cut
	maxIDLength = core.MaxIDBytes
)

// Reader makes spans of tasks that have ended. The zero Reader is useful. It is safe for
// concurrent use.
type Reader struct {
	// Translations say what is lost between dialects.
	Translations core.Translations
	// Content says that spans have what was said, redacted and cut.
	Content bool
	// Redact returns what takes secrets out of content. It may be nil, and return nil.
	Redact func() *redact.Redactor
}

// Spans returns the spans of a task from its events, that of the task first; none if it is not
// sampled, if a hub without a tracer opened it, or if its beginning is no longer kept.
func (r Reader) Spans(events iter.Seq[core.Event]) []Span {
	var b *builder
	for e := range events {
		if b == nil {
			o, is := e.Body.(core.Opened)
			if !is {
				return nil
			}
			own, _ := o.Trace.Span()
			if !own.Sampled || o.Trace.Above == o.Trace.Parent {
				return nil
			}
			b = r.begin(e, o, own)
			continue
		}
		b.take(e)
	}
	if b == nil {
		return nil
	}
	return b.spans()
}

// builder makes the spans of one task.
type builder struct {
	Reader
	redactor *redact.Redactor
	opened   core.Opened
	own      core.Span
	task     Span
	tools    []Span
	open     map[string]int // the tool calls without an end, by their ids
	calls    map[string]int // how often an id was used
	agent    core.AgentID
	dialect  string // of the agent
	attempts int
	usage    core.Usage
	said     bool
	answer   strings.Builder
	lost     []string // kinds
	omitted  int64
	last     core.Event
}

func (r Reader) begin(e core.Event, o core.Opened, own core.Span) *builder {
	b := &builder{
		Reader: r, opened: o, own: own, agent: o.Request.To.Agent(), last: e,
		task: Span{Trace: own.Trace, ID: own.ID, State: o.Trace.State, IsClient: true, Start: e.At},
		open: map[string]int{}, calls: map[string]int{},
	}
	if r.Content && r.Redact != nil {
		b.redactor = r.Redact()
	}
	if above, ok := (core.Trace{Parent: o.Trace.Above}).Span(); ok {
		if above.Trace == own.Trace {
			b.task.Parent = above.ID
		} else {
			b.task.Links = append(b.task.Links, Link{above.Trace, above.ID})
		}
	}
	return b
}

func (b *builder) take(e core.Event) {
	b.last = e
	k := e.Body.Kind()
	if b.Translations.Lost(b.opened.From.Dialect, b.dialect, k) != 0 && !slices.Contains(b.lost, k.String()) {
		b.lost = append(b.lost, k.String())
	}
	switch body := e.Body.(type) {
	case core.Assigned:
		b.agent, b.dialect, b.attempts = body.Agent, body.Dialect, body.Attempt
	case core.Accepted:
		b.moment(e.At, momentAccepted)
	case core.SessionLost:
		b.moment(e.At, momentLost)
	case core.Text:
		b.first(e.At)
		if b.Content && b.answer.Len() < maxClean {
			b.answer.WriteString(body.Text)
		}
	case core.ToolCall:
		b.call(e.At, body)
	case core.ToolResult:
		b.result(e.At, body)
	case core.ApprovalRequested:
		b.moment(e.At, momentRequested, text(attrToolName, body.Name), text(attrToolCallID, body.ID))
	case core.ApprovalDecided:
		b.moment(e.At, momentDecided, text(attrToolCallID, body.ID), Attribute{attrApproved, body.Approved})
	case core.QuestionAsked:
		b.moment(e.At, momentAsked)
	case core.QuestionAnswered:
		b.moment(e.At, momentAnswered)
	case core.Injected:
		b.moment(e.At, momentSteered)
		b.link(body.Trace)
	case core.Usage:
		b.usage = b.usage.Add(body)
	case core.Retrying:
		m := []Attribute{text(attrAgent, string(body.Agent)), {attrAttempt, int64(body.Attempt)}}
		if body.Fault != nil {
			m = append(m, text(attrErrorType, string(body.Fault.Code)))
		}
		b.moment(e.At, momentRetrying, m...)
	case core.Done:
		if body.Text != "" || len(body.Data) > 0 {
			b.first(e.At)
		}
		if b.Content && b.answer.Len() == 0 {
			b.answer.WriteString(body.Text)
		}
	}
}

// first notes the first piece of the answer.
func (b *builder) first(at time.Time) {
	if !b.said {
		b.said = true
		b.moment(at, momentFirst)
	}
}

func (b *builder) moment(at time.Time, name string, attributes ...Attribute) {
	if len(b.task.Moments) == maxMoments {
		b.omitted++
		return
	}
	b.task.Moments = append(b.task.Moments, Moment{name, at, attributes})
}

// link links the span of the task to that of a call which steered it.
func (b *builder) link(to core.Trace) {
	s, ok := to.Span()
	switch {
	case !ok || slices.Contains(b.task.Links, Link{s.Trace, s.ID}):
	case len(b.task.Links) == maxLinks:
		b.omitted++
	default:
		b.task.Links = append(b.task.Links, Link{s.Trace, s.ID})
	}
}

// call begins the span of a tool call. An agent may report a call again, with more of its input.
func (b *builder) call(at time.Time, c core.ToolCall) {
	if _, again := b.open[c.ID]; again {
		return
	}
	if len(b.tools) == maxSpans {
		b.omitted++
		return
	}
	nth := b.calls[c.ID]
	b.calls[c.ID]++
	s := Span{
		Trace: b.own.Trace, ID: toolID(b.own.ID, c.ID, nth), Parent: b.own.ID, State: b.task.State, Name: named(opExecute, c.Name), Start: at,
		Attributes: []Attribute{text(attrOperation, opExecute), text(attrToolName, c.Name), text(attrToolCallID, c.ID), text(attrTask, string(b.opened.Task))},
	}
	if b.Content {
		s.Attributes = append(s.Attributes, b.content(attrToolArguments, c.Input))
	}
	b.open[c.ID] = len(b.tools)
	b.tools = append(b.tools, s)
}

func (b *builder) result(at time.Time, res core.ToolResult) {
	i, is := b.open[res.ID]
	if !is {
		return
	}
	delete(b.open, res.ID)
	s := &b.tools[i]
	s.End = at
	if res.IsError {
		s.Failed = true
		s.Attributes = append(s.Attributes, text(attrErrorType, errTool))
	}
	if b.Content {
		s.Attributes = append(s.Attributes, b.content(attrToolResult, res.Output))
	}
}

// spans ends all spans and returns them.
func (b *builder) spans() []Span {
	var fault *core.Fault
	end := b.last.Body.Kind()
	if f, is := b.last.Body.(core.Failed); is {
		fault = f.Fault
	}
	operation := opInvoke
	if b.opened.Request.Intent == core.IntentNotify {
		operation = opNotify
	}
	t := &b.task
	t.End, t.Name = b.last.At, named(operation, string(b.agent))
	t.Attributes = []Attribute{
		text(attrOperation, operation), text(attrProvider, "dragoman"), text(attrTask, string(b.opened.Task)), text(attrEnd, end.String()),
		{attrHops, int64(b.opened.Hops)},
	}
	b.some(attrAgentID, string(b.agent))
	b.some(attrAgentName, string(b.agent))
	b.some(attrConversation, string(b.opened.Request.Thread))
	b.some(attrDialectFrom, b.opened.From.Dialect)
	b.some(attrDialectTo, b.dialect)
	if len(b.lost) > 0 {
		slices.Sort(b.lost)
		t.Attributes = append(t.Attributes, Attribute{attrLoss, b.lost})
	}
	for _, n := range []struct {
		key string
		n   int64
	}{
		{attrInputTokens, b.usage.Input}, {attrOutputTokens, b.usage.Output}, {attrCacheRead, b.usage.CacheRead},
		{attrCacheCreation, b.usage.CacheWrite}, {attrReasoning, b.usage.Thinking}, {attrAttempts, int64(b.attempts)}, {attrOmitted, b.omitted},
	} {
		if n.n > 0 {
			t.Attributes = append(t.Attributes, Attribute{n.key, n.n})
		}
	}
	if end == core.KindFailed {
		t.Failed = true
		if fault != nil {
			b.some(attrErrorType, string(fault.Code))
			if b.Content {
				t.Message = b.clean(fault.Message)
			}
		}
	}
	if b.last.Epoch > 1 {
		t.Attributes = append(t.Attributes, Attribute{attrRecovered, true})
	}
	if b.Content {
		t.Attributes = append(t.Attributes, b.message(attrInputMessages, "user", b.opened.Request.Content), b.message(attrOutputMessages, "assistant", b.answer.String()))
	}
	for _, i := range b.open {
		b.tools[i].End, b.tools[i].Failed = t.End, t.Failed
		if t.Failed && fault != nil {
			b.tools[i].Attributes = append(b.tools[i].Attributes, text(attrErrorType, string(fault.Code)))
		}
	}
	all := append([]Span{*t}, b.tools...)
	if name := b.opened.Trace.Tool; name != "" {
		all = append(all, b.byTool(name))
		all[0].Parent, all[0].Links = all[len(all)-1].ID, nil
	}
	return all
}

// byTool returns the span of the tool of the hub that opened the task. It lasts as long as the
// task.
func (b *builder) byTool(name string) Span {
	s := Span{
		Trace: b.own.Trace, ID: toolID(b.own.ID, "", 1), Parent: b.task.Parent, State: b.task.State, Name: named(opExecute, name),
		Start: b.task.Start, End: b.task.End, Links: b.task.Links, Failed: b.task.Failed,
		Attributes: []Attribute{text(attrOperation, opExecute), text(attrToolName, name), text(attrTask, string(b.opened.Task))},
	}
	for _, a := range b.task.Attributes {
		if a.Key == attrErrorType {
			s.Attributes = append(s.Attributes, a)
		}
	}
	return s
}

// some adds an attribute to the span of the task unless it is empty.
func (b *builder) some(key, value string) {
	if value != "" {
		b.task.Attributes = append(b.task.Attributes, text(key, value))
	}
}

// text returns an attribute with an id or a name, which may come from a peer.
func text(key, value string) Attribute { return Attribute{key, cut(value, maxIDLength)} }

func (b *builder) content(key, value string) Attribute { return Attribute{key, b.clean(value)} }

// message returns an attribute with a message as the conventions have it.
func (b *builder) message(key, role, said string) Attribute {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	out, _ := json.Marshal([]message{{role, []part{{"text", b.clean(said)}}}}) // strings always encode
	return Attribute{key, string(out)}
}

// clean redacts content, and cuts it.
func (b *builder) clean(s string) string {
	if b.redactor == nil {
		return cut(s, maxContent)
	}
	if len(s) < maxClean {
		return cut(b.redactor.Text(s), maxContent)
	}
	return cut(b.redactor.Beginning(cut(s, maxClean)), maxContent) // more may follow
}

// named returns the name of a span.
func named(operation, what string) string {
	if what == "" {
		return operation
	}
	return operation + " " + cut(what, maxIDLength)
}

// cut returns the beginning of a text, as valid UTF-8, without bytes that break a character.
func cut(s string, most int) string {
	if len(s) > most {
		for most > 0 && !utf8.RuneStart(s[most]) {
			most--
		}
		s = s[:most]
	}
	return strings.ToValidUTF8(s, "\ufffd")
}
