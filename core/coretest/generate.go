package coretest

import (
	"encoding/json"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
)

// The generators draw valid values: text is UTF-8, JSON is valid and compact, sequence
// numbers count from one, an id is never empty. Everything else is as unusual as possible:
// control characters, empty texts, numbers at their bounds.

// Compare makes cmp compare the unexported fields of values of the vocabulary too.
var Compare = cmp.AllowUnexported(core.Address{}, core.Fault{})

// Event draws an event of any kind.
func Event(t *rapid.T) core.Event {
	return EventOf(rapid.SampledFrom(core.Kinds()).Draw(t, "kind")).Draw(t, "event")
}

// EventOf draws events of one kind.
func EventOf(k core.Kind) *rapid.Generator[core.Event] {
	return rapid.Custom(func(t *rapid.T) core.Event {
		return core.Event{
			Seq:     rapid.Uint64Range(1, 1<<62).Draw(t, "seq"),
			Epoch:   rapid.Uint32Min(1).Draw(t, "epoch"),
			At:      moment().Draw(t, "at"),
			Body:    Body(k).Draw(t, "body"),
			Foreign: rapid.Ptr(foreign(), true).Draw(t, "foreign"),
		}
	})
}

// Body draws bodies of one kind; it is nil for an unknown kind.
func Body(k core.Kind) *rapid.Generator[core.Body] { return bodies[k] }

var bodies = map[core.Kind]*rapid.Generator[core.Body]{
	core.KindOpened: body(func(t *rapid.T) core.Opened {
		return core.Opened{
			Task: core.TaskID(id(t, "task")), From: principal(t), Request: Requests().Draw(t, "request"),
			Hops: rapid.IntRange(0, 100).Draw(t, "hops"), Chain: some(t, "chain", rapid.Map(ids, toAgentID)),
			Trace: core.Trace{Parent: words(t, "traceparent"), State: words(t, "tracestate"), Above: words(t, "above"), Tool: words(t, "tool")},
			Key:   words(t, "key"),
		}
	}),
	core.KindAssigned: body(func(t *rapid.T) core.Assigned {
		return core.Assigned{Agent: core.AgentID(id(t, "agent")), Attempt: rapid.IntMin(1).Draw(t, "attempt"), Dialect: words(t, "dialect"), Handover: handover(t)}
	}),
	core.KindAccepted: body(func(t *rapid.T) core.Accepted {
		return core.Accepted{Estimate: time.Duration(rapid.Int64Min(0).Draw(t, "estimate"))}
	}),
	core.KindSessionStarted: body(func(t *rapid.T) core.SessionStarted {
		return core.SessionStarted{Session: words(t, "session")}
	}),
	core.KindSessionLost: body(func(t *rapid.T) core.SessionLost {
		return core.SessionLost{Reason: words(t, "reason")}
	}),
	core.KindThinking: body(func(t *rapid.T) core.Thinking { return core.Thinking{Text: words(t, "text")} }),
	core.KindText:     body(func(t *rapid.T) core.Text { return core.Text{Text: words(t, "text")} }),
	core.KindToolCall: body(func(t *rapid.T) core.ToolCall {
		return core.ToolCall{ID: id(t, "id"), Name: words(t, "name"), Input: words(t, "input"), Parent: words(t, "parent")}
	}),
	core.KindToolState: body(func(t *rapid.T) core.ToolState {
		state := core.ToolCondition(rapid.Uint8Range(uint8(core.ToolPending), uint8(core.ToolCancelled)).Draw(t, "state"))
		return core.ToolState{ID: id(t, "id"), State: state, Detail: words(t, "detail")}
	}),
	core.KindToolResult: body(func(t *rapid.T) core.ToolResult {
		return core.ToolResult{ID: id(t, "id"), Output: words(t, "output"), IsError: flip(t, "is_error")}
	}),
	core.KindApprovalRequested: body(func(t *rapid.T) core.ApprovalRequested {
		return core.ApprovalRequested{ID: id(t, "id"), Name: words(t, "name"), Input: words(t, "input"), InputSHA256: words(t, "input_sha256")}
	}),
	core.KindApprovalDecided: body(func(t *rapid.T) core.ApprovalDecided {
		return core.ApprovalDecided{ID: id(t, "id"), Approved: flip(t, "approved"), All: flip(t, "all"), By: id(t, "by"), Reason: words(t, "reason"), Option: words(t, "option"), InputSHA256: words(t, "input_sha256")}
	}),
	core.KindQuestionAsked: body(func(t *rapid.T) core.QuestionAsked {
		option := rapid.Custom(func(t *rapid.T) core.Option {
			return core.Option{Label: words(t, "label"), Description: words(t, "description")}
		})
		return core.QuestionAsked{ID: id(t, "id"), Text: words(t, "question"), Header: words(t, "header"), Options: some(t, "options", option), Several: flip(t, "multi_select"), Until: moment().Draw(t, "until")}
	}),
	core.KindQuestionAnswered: body(func(t *rapid.T) core.QuestionAnswered {
		return core.QuestionAnswered{
			ID: id(t, "id"), Answered: flip(t, "answered"), Selected: some(t, "selected", rapid.String()), Text: words(t, "custom_text"),
			Content: perhapsJSON(t, "content"), Reason: words(t, "reason"), By: words(t, "by"),
		}
	}),
	core.KindInjected: body(func(t *rapid.T) core.Injected {
		priority := core.InjectionPriority(rapid.Uint8Range(0, uint8(core.InjectionDeferred)).Draw(t, "priority"))
		return core.Injected{ID: id(t, "id"), Content: words(t, "content"), Priority: priority, Source: words(t, "source"), Claimed: words(t, "claimed_source"), Trace: core.Trace{Parent: words(t, "traceparent"), State: words(t, "tracestate")}}
	}),
	core.KindInjectionAnswered: body(func(t *rapid.T) core.InjectionAnswered {
		return core.InjectionAnswered{ID: id(t, "id"), Accepted: flip(t, "accepted"), Reason: words(t, "reason")}
	}),
	core.KindFile:  rapid.Map(Files(), asBody),
	core.KindUsage: rapid.Map(usages(), asBody),
	core.KindRetrying: body(func(t *rapid.T) core.Retrying {
		return core.Retrying{Attempt: rapid.IntMin(1).Draw(t, "attempt"), Agent: core.AgentID(id(t, "agent")), Fault: Faults().Draw(t, "fault")}
	}),
	core.KindCancelRequested: body(func(t *rapid.T) core.CancelRequested {
		return core.CancelRequested{By: id(t, "by"), Reason: words(t, "reason")}
	}),
	core.KindForeign: body(func(t *rapid.T) core.ForeignFrame {
		return core.ForeignFrame{Dialect: id(t, "dialect"), Name: words(t, "name")}
	}),
	core.KindDone: body(func(t *rapid.T) core.Done {
		return core.Done{
			Text: words(t, "text"), Data: perhapsJSON(t, "data"), Truncated: flip(t, "truncated"),
			TokensUsed: rapid.Int64Min(0).Draw(t, "tokens_used"),
		}
	}),
	core.KindFailed:    body(func(t *rapid.T) core.Failed { return core.Failed{Fault: Faults().Draw(t, "fault")} }),
	core.KindCancelled: body(func(t *rapid.T) core.Cancelled { return core.Cancelled{Reason: words(t, "reason")} }),
}

func body[B core.Body](draw func(*rapid.T) B) *rapid.Generator[core.Body] {
	return rapid.Custom(func(t *rapid.T) core.Body { return draw(t) })
}

func asBody[B core.Body](b B) core.Body { return b }

// Requests draws requests of any intent.
func Requests() *rapid.Generator[core.Request] {
	return rapid.Custom(func(t *rapid.T) core.Request {
		r := core.Request{
			Intent:      core.Intent(rapid.Uint8Range(uint8(core.IntentAsk), uint8(core.IntentNotify)).Draw(t, "intent")),
			To:          Addresses().Draw(t, "to"),
			Thread:      core.ThreadID(words(t, "thread")),
			Content:     words(t, "content"),
			Data:        perhapsJSON(t, "data"),
			Attachments: some(t, "attachments", Files()),
			History:     some(t, "history", rapid.Custom(turn)),
			Domain:      words(t, "domain"),
			Priority:    core.Priority(rapid.Uint8Range(0, uint8(core.PriorityUrgent)).Draw(t, "priority")),
			MaxTokens:   rapid.Int64Min(0).Draw(t, "max_tokens"),
			ReportBack:  flip(t, "report_back"),
			Cause:       core.TaskID(words(t, "cause")),
			Foreign:     rapid.Ptr(foreign(), true).Draw(t, "foreign"),
		}
		if flip(t, "has a context") {
			r.Context = json.RawMessage(`{"key":` + string(JSON().Draw(t, "context")) + `}`)
		}
		if flip(t, "has a deadline") {
			r.Deadline = moment().Draw(t, "deadline")
		}
		if r.Intent == core.IntentNotify {
			r.Notice = &core.Notice{
				Topic: id(t, "topic"), Data: perhapsJSON(t, "notice"),
				Importance: core.Importance(rapid.Uint8Range(0, uint8(core.ImportanceHigh)).Draw(t, "importance")),
			}
		}
		return r
	})
}

// Addresses draws addresses that are set.
func Addresses() *rapid.Generator[core.Address] {
	name := rapid.StringMatching(`[a-zA-Z0-9_][a-zA-Z0-9_ -]{0,8}[a-zA-Z0-9_]`)
	return rapid.OneOf(
		rapid.Map(ids, func(s string) core.Address { return core.ToAgent(core.AgentID(s)) }),
		rapid.Map(rapid.SliceOfNDistinct(ids, 1, 3, rapid.ID[string]), func(all []string) core.Address {
			preferred := make([]core.AgentID, len(all))
			for i, id := range all {
				preferred[i] = core.AgentID(id)
			}
			return core.ToPreference(preferred...)
		}),
		rapid.Map(rapid.SliceOfN(name, 1, 3), func(all []string) core.Address { return core.ToCapability(all...) }),
		rapid.Map(rapid.StringMatching(`[a-z]{1,6}(\.[a-z*]{1,6}){0,3}`), core.ToDomain),
		rapid.Just(core.ToAny()),
		rapid.Just(core.ToHub()),
	)
}

// Faults draws faults without a hidden cause.
func Faults() *rapid.Generator[*core.Fault] {
	return rapid.Custom(func(t *rapid.T) *core.Fault {
		f := core.NewFault(rapid.SampledFrom(core.Codes()).Draw(t, "code"), "%s", words(t, "message"))
		f.RetryAfter = core.Seconds(time.Duration(rapid.IntRange(0, 3).Draw(t, "retry after")) * time.Second)
		f.Retryable, f.PeerCode = flip(t, "retryable"), words(t, "peer")
		return f
	})
}

// Files draws files, empty ones too.
func Files() *rapid.Generator[core.File] {
	return rapid.Custom(func(t *rapid.T) core.File {
		return core.File{Name: words(t, "name"), MediaType: words(t, "media_type"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data")}
	})
}

func usages() *rapid.Generator[core.Usage] {
	n := rapid.Int64Range(0, 1<<53)
	return rapid.Custom(func(t *rapid.T) core.Usage {
		return core.Usage{
			Input: n.Draw(t, "input"), Output: n.Draw(t, "output"), CacheRead: n.Draw(t, "cache_read"),
			CacheWrite: n.Draw(t, "cache_write"), Thinking: n.Draw(t, "thinking"),
		}
	})
}

// foreign draws foreign fields: JSON, or bytes.
func foreign() *rapid.Generator[core.Foreign] {
	return rapid.Custom(func(t *rapid.T) core.Foreign {
		f := core.Foreign{Dialect: id(t, "dialect")}
		if flip(t, "is JSON") {
			f.JSON = JSON().Draw(t, "json")
		} else {
			f.Wire = rapid.SliceOfN(rapid.Byte(), 1, -1).Draw(t, "wire")
		}
		return f
	})
}

// JSON draws a JSON value as encoding/json writes it.
func JSON() *rapid.Generator[json.RawMessage] {
	value := rapid.OneOf(
		rapid.Just[any](nil),
		rapid.Map(rapid.Bool(), asAny[bool]),
		rapid.Map(rapid.Int64(), asAny[int64]),
		rapid.Map(rapid.Float64(), asAny[float64]),
		rapid.Map(rapid.String(), asAny[string]),
		rapid.Map(rapid.SliceOfN(rapid.String(), 0, 3), asAny[[]string]),
		rapid.Map(rapid.MapOfN(rapid.String(), rapid.Int(), 0, 3), asAny[map[string]int]),
	)
	return rapid.Map(value, func(v any) json.RawMessage {
		b, err := json.Marshal(v)
		if err != nil {
			panic(err) // all have a JSON form
		}
		return b
	})
}

func asAny[V any](v V) any { return v }

// ids draws valid ids of agents.
var ids = rapid.StringMatching(`[a-zA-Z0-9_@][a-zA-Z0-9_@.:/ é-]{0,10}[a-zA-Z0-9_]`).Filter(func(s string) bool {
	return core.CheckAgentID(core.AgentID(s)) == nil
})

func toAgentID(s string) core.AgentID { return core.AgentID(s) }

func id(t *rapid.T, what string) string { return ids.Draw(t, what) }

func words(t *rapid.T, what string) string { return rapid.String().Draw(t, what) }

func flip(t *rapid.T, what string) bool { return rapid.Bool().Draw(t, what) }

// some draws up to three values; nil for none, as after decoding JSON.
func some[V any](t *rapid.T, what string, of *rapid.Generator[V]) []V {
	if vs := rapid.SliceOfN(of, 0, 3).Draw(t, what); len(vs) > 0 {
		return vs
	}
	return nil
}

func perhapsJSON(t *rapid.T, what string) json.RawMessage {
	if flip(t, "has "+what) {
		return JSON().Draw(t, what)
	}
	return nil
}

func moment() *rapid.Generator[time.Time] {
	return rapid.Custom(func(t *rapid.T) time.Time {
		return time.Unix(rapid.Int64Range(0, 1<<33).Draw(t, "seconds"), rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).UTC()
	})
}

func handover(t *rapid.T) *core.Handover {
	if !flip(t, "handed over") {
		return nil
	}
	return &core.Handover{From: core.AgentID(id(t, "from")), Turns: rapid.IntMin(0).Draw(t, "turns"), Files: rapid.IntMin(0).Draw(t, "files"), LeftOut: rapid.IntMin(0).Draw(t, "left out")}
}

func principal(t *rapid.T) core.Principal {
	return core.Principal{ID: id(t, "from"), Dialect: words(t, "dialect"), Authenticated: flip(t, "authenticated"), Operator: flip(t, "operator")}
}

func turn(t *rapid.T) core.Turn {
	return core.Turn{
		Role: core.Role(rapid.Uint8Range(uint8(core.RoleUser), uint8(core.RoleAssistant)).Draw(t, "role")),
		Text: words(t, "text"), Agent: core.AgentID(words(t, "agent")), Task: core.TaskID(words(t, "task")), At: moment().Draw(t, "at"),
	}
}
