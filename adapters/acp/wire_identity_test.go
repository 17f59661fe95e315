package acp_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// stays checks that a payload of the kind is the same after a translation to values of the
// core and back, except for the order of members.
func stays(t *rapid.T, kind wire.Kind, payload any, through func(wire.Envelope) any) {
	t.Helper()
	before, after := canonical(t, wire.Marshal(payload)), canonical(t, wire.Marshal(through(encode(t, kind, payload))))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", kind, diff)
	}
}

// canonical parses JSON and keeps every digit of its numbers.
func canonical(t *rapid.T, raw []byte) (v any) {
	t.Helper()
	var all map[string]json.RawMessage
	if json.Unmarshal(raw, &all) == nil && all != nil {
		members := map[string]any{}
		for k, v := range all {
			members[k] = canonical(t, v)
		}
		return members
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil && list != nil {
		items := []any{}
		for _, v := range list {
			items = append(items, canonical(t, v))
		}
		return items
	}
	if raw[0] != '"' {
		return string(raw)
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return "a text: " + text
}

// aContext draws the context of a query or a delegate.
var aContext = rapid.Custom(func(t *rapid.T) json.RawMessage {
	fields := []wire.Field{}
	if rapid.Bool().Draw(t, "its own") {
		fields = append(fields, wire.Field{Key: "x", Value: orNull(anyValue.Draw(t, "x"))})
	}
	if files := rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"); len(files) > 0 {
		fields = append(fields, wire.Field{Key: "files", Value: filesJSON(files)})
	}
	if rapid.Bool().Draw(t, "history") {
		fields = append(fields, wire.Field{Key: "history", Value: wire.Marshal([]map[string]string{{"role": "user", "text": word.Draw(t, "said")}})})
	}
	if len(fields) == 0 {
		return nil
	}
	return wire.SetMembers([]byte("{}"), fields...)
})

// filesJSON returns the files of a context or of data.
func filesJSON(files []core.File) []byte {
	list := make([]map[string]any, len(files))
	for i, f := range files {
		list[i] = map[string]any{"name": f.Name, "data": append([]byte{}, f.Data...)}
		if f.MediaType != "" {
			list[i]["media_type"] = f.MediaType
		}
	}
	return wire.Marshal(list)
}

// someData draws the data of an answer: null if there is none.
var someData = rapid.Map(anyValue, orNull)

func TestEveryPayloadIsTheSameAfterATranslationToTheCoreAndBack(t *testing.T) {
	now := time.UnixMilli(1771108000000)
	tokens, ms := rapid.Int64Range(0, 1<<40), rapid.Int64Range(1, 1<<31)
	said := word.Filter(func(s string) bool { return s != "" })
	yes := true
	for kind, check := range map[wire.Kind]func(*rapid.T){
		wire.KindQuery: func(t *rapid.T) {
			q := wire.Query{
				Question: wire.Marshal(said.Draw(t, "question")), Domain: word.Draw(t, "domain"), Context: aContext.Draw(t, "context"),
				MaxTokens: tokens.Draw(t, "max tokens"), DeadlineMS: ms.Draw(t, "deadline"),
			}
			if rapid.Bool().Draw(t, "structured") {
				q.Question = object.Draw(t, "structure")
			}
			stays(t, wire.KindQuery, q, func(e wire.Envelope) any { return wire.QueryOf(wireRequestOf(t, e, now), now) })
		},
		wire.KindDelegate: func(t *rapid.T) {
			d := wire.Delegate{
				Task: said.Draw(t, "task"), Context: aContext.Draw(t, "context"), Domain: word.Draw(t, "domain"), MaxTokens: tokens.Draw(t, "max tokens"),
				Priority: rapid.SampledFrom([]string{"normal", "urgent"}).Draw(t, "priority"), ReportBack: &yes, DeadlineMS: ms.Draw(t, "deadline"),
			}
			stays(t, wire.KindDelegate, d, func(e wire.Envelope) any { return wire.DelegateOf(wireRequestOf(t, e, now), now) })
		},
		wire.KindNotify: func(t *rapid.T) {
			n := wire.Notify{
				Topic: rapid.StringMatching(`[a-z.]{1,12}`).Draw(t, "topic"), Data: someData.Draw(t, "data"),
				Importance: rapid.SampledFrom([]string{"low", "medium", "high"}).Draw(t, "importance"),
			}
			stays(t, wire.KindNotify, n, func(e wire.Envelope) any {
				var n wire.Notify
				if err := e.Read(&n); err != nil {
					t.Fatal(err)
				}
				return wire.NotifyOf(*n.Request().Notice)
			})
		},
		wire.KindResponse: func(t *rapid.T) {
			r := wire.Response{
				Data: wire.ResponseOf(core.Answer{
					Data:  anyValue.Filter(func(v json.RawMessage) bool { return string(v) != "null" }).Draw(t, "data"),
					Files: rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"),
				}).Data,
				Summary: said.Draw(t, "summary"), TokensUsed: tokens.Draw(t, "tokens"), Truncated: rapid.Bool().Draw(t, "truncated"),
			}
			stays(t, wire.KindResponse, r, func(e wire.Envelope) any { return wire.ResponseOf(answerOf(t, e)) })
		},
		wire.KindResult: func(t *rapid.T) {
			r := wire.Result{
				Status:  rapid.SampledFrom([]string{wire.StatusCompleted, wire.StatusPartial, wire.StatusFailed}).Draw(t, "status"),
				Outcome: said.Draw(t, "outcome"), TokensUsed: tokens.Draw(t, "tokens"),
			}
			if files := rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"); len(files) > 0 {
				r.Data = wire.SetMembers([]byte("{}"), wire.Field{Key: "files", Value: filesJSON(files)})
			}
			if r.Status == wire.StatusFailed {
				r.Error = wire.ResultOf(core.Answer{Fault: aNativeFault.Draw(t, "fault")}).Error
			}
			stays(t, wire.KindResult, r, func(e wire.Envelope) any { return wire.ResultOf(answerOf(t, e)) })
		},
		wire.KindError: func(t *rapid.T) {
			e := wire.ErrorOf(aNativeFault.Draw(t, "fault"))
			e.Partial = wire.PartialOf(core.Answer{
				Text: word.Draw(t, "text"), Files: rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"), TokensUsed: tokens.Draw(t, "tokens"),
			})
			stays(t, wire.KindError, e, func(e wire.Envelope) any { return wire.FailureOf(answerOf(t, e)) })
		},
	} {
		t.Run(string(kind), func(t *testing.T) { rapid.Check(t, check) })
	}
}

// aNativeFault draws a fault with a code that ACP has and a message without one.
var aNativeFault = rapid.Custom(func(t *rapid.T) *core.Fault {
	f := core.NewFault(rapid.SampledFrom([]core.Code{
		core.CodeNotAuthorized, core.CodeUnknownDomain, core.CodeOverloaded, core.CodeInternal, core.CodeTimeout, core.CodeCancelled,
		core.CodeUnknownKind, core.CodeUnknownAgent, core.CodeUnreachable, core.CodeInvalid, core.CodeTooLarge, core.CodeRateLimited,
		core.CodeUnsupported, core.CodeConflict, core.CodeLoop, core.CodeBudget,
	}).Draw(t, "code"), "%s", rapid.StringMatching(`why [a-z]{1,9}`).Draw(t, "message"))
	if f.Code == core.CodeCancelled {
		f.Retryable = false
	}
	return f
})
