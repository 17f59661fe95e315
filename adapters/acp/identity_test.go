package acp

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// stays holds that a payload of the kind is the same after a way through the words
// of the hub, but for the order of members.
func stays[P any](t *rapid.T, kind Kind, payload P, through func(P) any) {
	t.Helper()
	var back P
	read(t, kind, payload, &back)
	before, after := canonical(t, encode(payload)), canonical(t, encode(through(back)))
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("%s (-before +after):\n%s", kind, diff)
	}
}

// canonical reads JSON with every digit of its numbers.
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

// aContext is what a sender of ours or anybody else's puts into a context.
var aContext = rapid.Custom(func(t *rapid.T) json.RawMessage {
	fields := []field{}
	if rapid.Bool().Draw(t, "its own") {
		fields = append(fields, field{"x", orNull(anyValue.Draw(t, "x"))})
	}
	if files := rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"); len(files) > 0 {
		fields = append(fields, field{memberFiles, encode(filesOf(files))})
	}
	if rapid.Bool().Draw(t, "history") {
		fields = append(fields, field{memberHistory, encode([]turn{{core.RoleUser, word.Draw(t, "said"), ""}})})
	}
	if len(fields) == 0 {
		return nil
	}
	return setMembers([]byte("{}"), fields...)
})

// someData is what stands in the data of an answer: null where there is none.
var someData = rapid.Map(anyValue, orNull)

func TestEveryFrameIsTheSameAfterAWayThroughTheWordsOfTheHub(t *testing.T) {
	now := time.UnixMilli(1771108000000)
	tokens, ms := rapid.Int64Range(0, 1<<40), rapid.Int64Range(1, 1<<31)
	said := word.Filter(func(s string) bool { return s != "" })
	yes := true
	for kind, check := range map[Kind]func(*rapid.T){
		KindQuery: func(t *rapid.T) {
			q := Query{
				Question: encode(said.Draw(t, "question")), Domain: word.Draw(t, "domain"), Context: aContext.Draw(t, "context"),
				MaxTokens: tokens.Draw(t, "max tokens"), DeadlineMS: ms.Draw(t, "deadline"),
			}
			if rapid.Bool().Draw(t, "structured") {
				q.Question = object.Draw(t, "structure")
			}
			stays(t, KindQuery, q, func(q Query) any { return queryOf(q.Request(now), now) })
		},
		KindDelegate: func(t *rapid.T) {
			d := Delegate{
				Task: said.Draw(t, "task"), Context: aContext.Draw(t, "context"), Domain: word.Draw(t, "domain"), MaxTokens: tokens.Draw(t, "max tokens"),
				Priority: rapid.SampledFrom([]string{priorityNormal, priorityUrgent}).Draw(t, "priority"), ReportBack: &yes, DeadlineMS: ms.Draw(t, "deadline"),
			}
			stays(t, KindDelegate, d, func(d Delegate) any { return delegateOf(d.Request(now), now) })
		},
		KindNotify: func(t *rapid.T) {
			n := Notify{
				Topic: rapid.StringMatching(`[a-z.]{1,12}`).Draw(t, "topic"), Data: someData.Draw(t, "data"),
				Importance: rapid.SampledFrom([]string{"low", "medium", "high"}).Draw(t, "importance"),
			}
			stays(t, KindNotify, n, func(n Notify) any { return notifyOf(*n.Request().Notice) })
		},
		KindResponse: func(t *rapid.T) {
			r := Response{
				Data:    orNull(joinFiles(anyValue.Filter(func(v json.RawMessage) bool { return string(v) != "null" }).Draw(t, "data"), rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"))),
				Summary: said.Draw(t, "summary"), TokensUsed: tokens.Draw(t, "tokens"), Truncated: rapid.Bool().Draw(t, "truncated"),
			}
			stays(t, KindResponse, r, func(r Response) any { return responseOf(foldBodies(r.Bodies())) })
		},
		KindResult: func(t *rapid.T) {
			r := Result{
				Status:  rapid.SampledFrom([]string{StatusCompleted, StatusPartial, StatusFailed}).Draw(t, "status"),
				Outcome: said.Draw(t, "outcome"), TokensUsed: tokens.Draw(t, "tokens"),
			}
			if files := rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"); len(files) > 0 {
				r.Data = joinFiles(nil, files)
			}
			if r.Status == StatusFailed {
				r.Error = new(words(aNativeFault.Draw(t, "fault")))
			}
			stays(t, KindResult, r, func(r Result) any { return resultOf(foldBodies(r.Bodies())) })
		},
		KindError: func(t *rapid.T) {
			e := errorOf(aNativeFault.Draw(t, "fault"))
			e.Partial = partialOf(core.Answer{
				Text: word.Draw(t, "text"), Files: rapid.SliceOfN(aFile, 0, 2).Draw(t, "files"), TokensUsed: tokens.Draw(t, "tokens"),
			})
			stays(t, KindError, e, func(e *Error) any { return failureOf(foldBodies(e.Bodies())) })
		},
	} {
		t.Run(string(kind), func(t *testing.T) { rapid.Check(t, check) })
	}
}

// aNativeFault is one whose code ACP has, and whose message is no code itself.
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

// anEnvelope draws an envelope of a kind as anybody might write it: members of its
// own, in any order.
func anEnvelope(t *rapid.T, id, kind, ref string, payload []field) []byte {
	all := []field{{"id", encode(id)}, {"kind", encode(kind)}}
	if ref != "" {
		all = append(all, field{"ref", encode(ref)})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "more in the payload") {
		payload = append(payload, field{"y" + string(encode(i)) + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "key"), orNull(anyValue.Draw(t, "value"))})
	}
	all = append(all, field{"payload", setMembers([]byte("{}"), rapid.Permutation(payload).Draw(t, "payload")...)})
	for i := range rapid.IntRange(0, 2).Draw(t, "more") {
		all = append(all, field{"z" + string(encode(i)) + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "key"), orNull(anyValue.Draw(t, "value"))})
	}
	return setMembers([]byte("{}"), rapid.Permutation(all).Draw(t, "members")...)
}

// untouched holds that an envelope came as it was sent, but for its address.
func untouched(t *rapid.T, sent []byte, got Envelope) {
	t.Helper()
	var before, after map[string]json.RawMessage
	if json.Unmarshal(sent, &before) != nil || json.Unmarshal(got.Raw, &after) != nil {
		t.Fatalf("got %s, want JSON like %s", got.Raw, sent)
	}
	for _, key := range []string{"from", "to", "ref"} {
		delete(before, key)
		delete(after, key)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Fatalf("%s (-sent +got):\n%s", got.Kind, diff)
	}
}

// timeless is a test in a bubble of fake time, where it has no deadline to ask for.
type timeless struct{ testing.TB }

// What one ACP peer asks and what another answers arrive as they were written, with
// every member (promise P11): of a query and a delegate, with pieces on the way, of
// answers and failures.
func TestWhatTwoACPPeersSayToEachOtherArrivesAsItWasSaid(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		kit, fam := s.enter("kit").live(), s.agent("fam", `{"extensions":["progress"],"max_concurrent_tasks":9}`)
		n := 0
		rapid.Check(timeless{t}, func(t *rapid.T) {
			n++
			id := "q" + string(encode(n))
			kind := rapid.SampledFrom([]Kind{KindQuery, KindDelegate, "negotiate"}).Draw(t, "kind")
			asks := map[Kind][]field{KindQuery: {{"question", encode(word.Filter(func(s string) bool { return s != "" }).Draw(t, "question"))}}, KindDelegate: {{"task", encode("x" + word.Draw(t, "task"))}}}
			sent := setMembers(anEnvelope(t, id, string(kind), "", asks[kind]), field{"to", []byte(`"fam"`)})
			kit.say("%s", sent)
			if kind == KindDelegate {
				kit.expect(KindAck)
			}
			untouched(t, sent, fam.expect(kind))
			if kind != "negotiate" {
				for seq := range rapid.IntRange(0, 3).Draw(t, "pieces") {
					piece := anEnvelope(t, id+"p"+string(encode(seq)), "progress", id, []field{{"seq", encode(seq + 1)}, {"text", encode(word.Draw(t, "text"))}})
					fam.say("%s", piece)
					untouched(t, piece, kit.expect(KindProgress))
				}
			}
			answers := map[Kind][]field{
				KindResponse: {{"summary", encode(word.Draw(t, "summary"))}, {"data", someData.Draw(t, "data")}, {"tokens_used", encode(rapid.IntRange(0, 99).Draw(t, "tokens"))}},
				KindResult:   {{"status", encode(rapid.SampledFrom([]string{StatusCompleted, StatusPartial, StatusFailed}).Draw(t, "status"))}, {"outcome", encode(word.Draw(t, "outcome"))}},
				KindError:    {{"code", encode("c" + word.Draw(t, "code"))}, {"message", encode(word.Draw(t, "message"))}},
				"agreed":     nil,
			}
			fits := map[Kind][]Kind{KindQuery: {KindResponse, KindError}, KindDelegate: {KindResult, KindError}, "negotiate": {"agreed", KindError}}
			end := rapid.SampledFrom(fits[kind]).Draw(t, "end")
			last := anEnvelope(t, id+"e", string(end), id, answers[end])
			fam.say("%s", last)
			untouched(t, last, kit.expect(end))
		})
		kit.silent()
		fam.silent()
	})
}

// What is said to an agent on the way, and what one who asks says on the way, means
// the same in ACP: context pushed in, and a cancel with its reason.
func TestContextAndCancelSurviveACPInBothDirections(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		rest, fam := s.plain("rest"), s.agent("fam", `{}`)
		kit, poet := s.enter("kit"), s.plainAgent("poet", core.Card{Features: core.FeatureInjection | core.FeatureCancellation, MaxConcurrent: 9})
		n := 0
		rapid.Check(timeless{t}, func(rt *rapid.T) {
			n++
			in := eventOf[core.KindInjected].Filter(func(b core.Body) bool { return b.(core.Injected).Content != "" }).Draw(rt, "context").(core.Injected)
			reason := word.Draw(rt, "reason")

			// To an ACP agent, and from it.
			task := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: "?"})
			id := fam.expect(KindQuery).ID
			if err := rest.Inject(task.ID(), in); err != nil {
				rt.Fatal(err)
			}
			var notice Notify
			var told Context
			if e := fam.expect(KindNotify); e.Read(&notice) != nil || notice.Topic != TopicContext || readValue(notice.Data, &told) != nil {
				rt.Fatalf("got %s, want a notify of context", e.Raw)
			}
			if want := (Context{id, in.ID, in.Content, in.Priority.String(), in.Source}); told != want {
				rt.Fatalf("context: got %+v, want %+v", told, want)
			}
			if err := rest.Cancel(task.ID(), reason); err != nil {
				rt.Fatal(err)
			}
			var cancel Cancel
			if e := fam.expect(KindCancel); e.Read(&cancel) != nil || cancel.Reason != reason || e.Ref != id {
				rt.Fatalf("got %s, want a cancel of %s because of %q", e.Raw, id, reason)
			}
			fam.say(`{"id":"e%d","kind":"error","ref":"%s","payload":{"code":"cancelled","message":%s}}`, n, id, encode(reason))
			if got := s.ended(task); got.End != core.KindCancelled {
				rt.Fatalf("got %+v, want it cancelled", got)
			}

			// From an ACP requester, and to it.
			q := "q" + string(encode(n))
			kit.say(`{"id":"%s","to":"poet","kind":"query","payload":{"question":"?"}}`, q)
			work := s.assigned(poet)
			told.Ref = q
			kit.say(`{"id":"n%d","kind":"notify","payload":{"topic":"dragoman.context","data":%s}}`, n, encode(told))
			if got := s.news(poet); len(got.Events) != 1 || !cmp.Equal(got.Events[0].Body, core.Body(in)) {
				rt.Fatalf("got %+v, want %+v", got.Events, in)
			}
			kit.say(`{"id":"c%d","kind":"cancel","ref":"%s","payload":%s}`, n, q, encode(Cancel{Reason: reason}))
			expect[Ack](kit, KindAck, "c"+string(encode(n)))
			b := s.news(poet)
			if got, ok := b.Events[0].Body.(core.CancelRequested); b.Role != hub.Agent || !ok || got.Reason != reason {
				rt.Fatalf("got %+v, want to be cancelled because of %q", b.Events, reason)
			}
			s.report(poet, work, core.Cancelled{Reason: reason})
			if got := expect[Error](kit, KindError, q); got.Code != CodeCancelled {
				rt.Fatalf("got %+v, want cancelled", &got)
			}
			s.news(poet)
			for range task.Events() { // the requester has read them
				if b := s.news(rest); b.Events[len(b.Events)-1].Body.Kind().Ends() {
					break
				}
			}
		})
	})
}
