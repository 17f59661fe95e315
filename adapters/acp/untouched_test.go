package acp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// entry is a member of a JSON object: its key, and its value in JSON.
type entry struct{ key, value string }

// quoted returns a string as JSON.
func quoted(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // any string can be encoded
	}
	return string(b)
}

// objectOf returns a JSON object.
func objectOf(members ...entry) string {
	var all []string
	for _, m := range members {
		all = append(all, quoted(m.key)+":"+m.value)
	}
	return "{" + strings.Join(all, ",") + "}"
}

// anyText draws any JSON string, anyValueText any JSON value.
var (
	anyText      = rapid.String().Filter(utf8.ValidString)
	anyValueText = rapid.Custom(func(t *rapid.T) string {
		switch rapid.IntRange(0, 4).Draw(t, "type") {
		case 0:
			return "null"
		case 1:
			return fmt.Sprint(rapid.Int64().Draw(t, "number"))
		case 2:
			return quoted(anyText.Draw(t, "text"))
		case 3:
			return "[" + quoted(anyText.Draw(t, "item")) + "]"
		}
		return objectOf(entry{rapid.SampledFrom([]string{"value", "files", "x"}).Draw(t, "key"), quoted(anyText.Draw(t, "member"))})
	})
)

// anEnvelope draws an envelope of a kind with additional members, in any order.
func anEnvelope(t *rapid.T, id, kind, to, ref string, payload ...entry) string {
	all := []entry{{"id", quoted(id)}, {"kind", quoted(kind)}}
	if to != "" {
		all = append(all, entry{"to", quoted(to)})
	}
	if ref != "" {
		all = append(all, entry{"ref", quoted(ref)})
	}
	for i := range rapid.IntRange(0, 2).Draw(t, "more in the payload") {
		payload = append(payload, entry{fmt.Sprint("y", i) + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "key"), anyValueText.Draw(t, "value")})
	}
	all = append(all, entry{"payload", objectOf(rapid.Permutation(payload).Draw(t, "payload")...)})
	for i := range rapid.IntRange(0, 2).Draw(t, "more") {
		all = append(all, entry{fmt.Sprint("z", i) + rapid.StringMatching(`[a-z]{1,6}`).Draw(t, "key"), anyValueText.Draw(t, "value")})
	}
	return objectOf(rapid.Permutation(all).Draw(t, "members")...)
}

// checkUntouched checks that an envelope arrived as it was sent, except for its address.
func checkUntouched(t *rapid.T, sent string, got wire.Envelope) {
	t.Helper()
	var before, after map[string]json.RawMessage
	if json.Unmarshal([]byte(sent), &before) != nil || json.Unmarshal(got.Raw, &after) != nil {
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

// noDeadline is a test without a deadline, which a bubble cannot have.
type noDeadline struct{ testing.TB }

// Envelopes between ACP peers arrive with every member (promise P11): queries, delegates,
// progress, answers and failures.
func TestEnvelopesBetweenTwoACPPeersArriveUnchanged(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit, fam := s.peer("kit").declareProgress(), s.agent("fam", `{"extensions":["progress"],"max_concurrent_tasks":9}`)
		n := 0
		rapid.Check(noDeadline{t}, func(t *rapid.T) {
			n++
			id := fmt.Sprint("q", n)
			kind := rapid.SampledFrom([]wire.Kind{wire.KindQuery, wire.KindDelegate, "negotiate"}).Draw(t, "kind")
			asks := map[wire.Kind][]entry{wire.KindQuery: {{"question", quoted(anyText.Filter(func(s string) bool { return s != "" }).Draw(t, "question"))}}, wire.KindDelegate: {{"task", quoted("x" + anyText.Draw(t, "task"))}}}
			sent := anEnvelope(t, id, string(kind), "fam", "", asks[kind]...)
			kit.send("%s", sent)
			if kind == wire.KindDelegate {
				kit.expect(wire.KindAck)
			}
			checkUntouched(t, sent, fam.expect(kind))
			if kind != "negotiate" {
				for seq := range rapid.IntRange(0, 3).Draw(t, "pieces") {
					piece := anEnvelope(t, fmt.Sprint(id, "p", seq), "progress", "", id, entry{"seq", fmt.Sprint(seq + 1)}, entry{"text", quoted(anyText.Draw(t, "text"))})
					fam.send("%s", piece)
					checkUntouched(t, piece, kit.expect(wire.KindProgress))
				}
			}
			answers := map[wire.Kind][]entry{
				wire.KindResponse: {{"summary", quoted(anyText.Draw(t, "summary"))}, {"data", anyValueText.Draw(t, "data")}, {"tokens_used", fmt.Sprint(rapid.IntRange(0, 99).Draw(t, "tokens"))}},
				wire.KindResult:   {{"status", quoted(rapid.SampledFrom([]string{wire.StatusCompleted, wire.StatusPartial, wire.StatusFailed}).Draw(t, "status"))}, {"outcome", quoted(anyText.Draw(t, "outcome"))}},
				wire.KindError:    {{"code", quoted("c" + anyText.Draw(t, "code"))}, {"message", quoted(anyText.Draw(t, "message"))}},
				"agreed":          nil,
			}
			fits := map[wire.Kind][]wire.Kind{wire.KindQuery: {wire.KindResponse, wire.KindError}, wire.KindDelegate: {wire.KindResult, wire.KindError}, "negotiate": {"agreed", wire.KindError}}
			end := rapid.SampledFrom(fits[kind]).Draw(t, "end")
			last := anEnvelope(t, id+"e", string(end), "", id, answers[end]...)
			fam.send("%s", last)
			checkUntouched(t, last, kit.expect(end))
		})
		kit.expectNothing()
		fam.expectNothing()
	})
}

// Context and a cancel with its reason keep their meaning from a requester to an agent
// through ACP.
func TestContextAndCancelSurviveACPInBothDirections(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		rest, fam := s.plainSession("rest"), s.agent("fam", `{}`)
		kit, poet := s.peer("kit"), s.plainAgent("poet", core.Card{Features: core.FeatureInjection | core.FeatureCancellation, MaxConcurrent: 9})
		n := 0
		rapid.Check(noDeadline{t}, func(rt *rapid.T) {
			n++
			in := core.Injected{
				ID: rapid.StringMatching(`[a-z0-9]{1,8}`).Draw(rt, "id"), Content: "x" + anyText.Draw(rt, "content"), Source: anyText.Draw(rt, "source"),
				Priority: rapid.SampledFrom([]core.InjectionPriority{core.InjectionImmediate, core.InjectionNormal, core.InjectionDeferred}).Draw(rt, "priority"),
			}
			reason := anyText.Draw(rt, "reason")

			// To an ACP agent, and from it.
			asked := s.ask(rest, core.Request{To: core.ToAgent("fam"), Content: "?"})
			id := fam.expect(wire.KindQuery).ID
			if err := rest.Inject(t.Context(), asked.ID(), in); err != nil {
				rt.Fatal(err)
			}
			var notice wire.Notify
			var got wire.Context
			if e := fam.expect(wire.KindNotify); e.Read(&notice) != nil || notice.Topic != wire.TopicContext || json.Unmarshal(notice.Data, &got) != nil {
				rt.Fatalf("got %s, want a notify of context", e.Raw)
			}
			told := in // the hub names the source, and the sender's word stands beside it
			told.Source, told.Claimed = "rest", in.Source
			if want := (wire.Context{Ref: id, ID: in.ID, Content: in.Content, Priority: in.Priority.String(), Source: told.Attribution()}); got != want {
				rt.Fatalf("context: got %+v, want %+v", got, want)
			}
			if err := rest.Cancel(asked.ID(), reason); err != nil {
				rt.Fatal(err)
			}
			var cancel wire.Cancel
			if e := fam.expect(wire.KindCancel); e.Read(&cancel) != nil || cancel.Reason != reason || e.Ref != id {
				rt.Fatalf("got %s, want a cancel of %s because of %q", e.Raw, id, reason)
			}
			fam.send(`{"id":"e%d","kind":"error","ref":"%s","payload":{"code":"cancelled","message":%s}}`, n, id, quoted(reason))
			if got := s.ended(asked); got.End != core.KindCancelled {
				rt.Fatalf("got %+v, want it cancelled", got)
			}

			// From an ACP requester, and to it.
			q := fmt.Sprint("q", n)
			kit.send(`{"id":"%s","to":"poet","kind":"query","payload":{"question":"?"}}`, q)
			work := s.assigned(poet)
			got.Ref = q
			kit.send(`{"id":"n%d","kind":"notify","payload":{"topic":"dragoman.context","data":%s}}`, n, objectOf(entry{"ref", quoted(got.Ref)}, entry{"id", quoted(got.ID)}, entry{"content", quoted(got.Content)}, entry{"priority", quoted(got.Priority)}, entry{"source", quoted(in.Source)}))
			told.Source = "kit"
			if got := s.nextBatch(poet); len(got.Events) != 1 || !cmp.Equal(got.Events[0].Body, core.Body(told)) {
				rt.Fatalf("got %+v, want %+v", got.Events, told)
			}
			kit.send(`{"id":"c%d","kind":"cancel","ref":"%s","payload":%s}`, n, q, objectOf(entry{"reason", quoted(reason)}))
			expect[wire.Ack](kit, wire.KindAck, fmt.Sprint("c", n))
			b := s.nextBatch(poet)
			if got, ok := b.Events[0].Body.(core.CancelRequested); b.Role != task.Agent || !ok || got.Reason != reason {
				rt.Fatalf("got %+v, want a cancel because of %q", b.Events, reason)
			}
			s.report(poet, work, core.Cancelled{Reason: reason})
			if got := expect[wire.Error](kit, wire.KindError, q); got.Code != wire.CodeCancelled {
				rt.Fatalf("got %+v, want cancelled", &got)
			}
			s.nextBatch(poet)
			for range asked.Events() { // the requester has read them
				if b := s.nextBatch(rest); b.Events[len(b.Events)-1].Body.Kind().Ends() {
					break
				}
			}
		})
	})
}
