package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// answer is an answer in words, as the dialect of who asked tells it.
func (d *duo) answer(text string) telling {
	want := d.asks.done
	want.Text = text
	if d.asks.streams {
		want.Pieces = 1
	}
	return want
}

func shortText(t *testing.T, d *duo) string {
	key := d.key()
	same(t, d.ask(t, "say "+key), d.answer(fewWords(key)))
	return "ok"
}

// burst asks for 5,000 chunks: they arrive complete and in order, in pieces where
// the dialect has them.
func burst(t *testing.T, d *duo) string {
	same(t, d.ask(t, "burst "+d.key()), d.answer(wholeBurst))
	if d.inPieces() {
		return "in pieces"
	}
	return "folded"
}

// structuredData asks with a structure and for one. A Coven agent has a place for
// neither: it is asked, and answers, with JSON in a fence. A pi client asks in
// words and is answered in them.
func structuredData(t *testing.T, d *duo) string {
	act := "data " + d.key()
	q := d.inquiry(act)
	want := dataAnswer{Heard: act, Given: json.RawMessage("null")}
	switch {
	case !d.asks.data:
	case d.answers == coven.Name:
		q.data = json.RawMessage(dataAsked)
		want.Heard += "\n\nData:\n```json\n" + dataAsked + "\n```"
	case d.answers == gatewayName:
		q.data = json.RawMessage(dataAsked)
		want.Given = json.RawMessage(strings.Replace(dataAsked, "9007199254740993", `"9007199254740993"`, 1)) // which no double holds
	default:
		q.data = json.RawMessage(dataAsked)
		want.Given = q.data
	}
	var got telling
	d.counts(t, d.folds(), func() { got = d.begin(q).outcome(t) })
	data := got.Data
	got.Data = nil
	same(t, telling{Text: got.Text[:min(len(seeData), len(got.Text))]}, telling{Text: seeData})
	rest := got.Text[min(len(seeData), len(got.Text)):]
	got.Text = ""
	wantEnd := d.answer("")
	same(t, got, wantEnd)
	word := "native"
	switch {
	case d.answers == coven.Name:
		word = "folded, fence"
		inner, ok := fencedJSON(rest)
		if !ok || data != nil {
			t.Errorf("got the text %q and the data %s, want JSON in a fence and no data", rest, data)
		}
		data = inner
	case !d.asks.data:
		word = "folded, text"
		data = json.RawMessage(rest)
	case rest != "":
		t.Errorf("got the text %q behind %q, want none", rest, seeData)
	}
	if !sameJSON(data, plainJSON(want)) {
		t.Errorf("\ngot  %s\nwant %s", data, plainJSON(want))
	}
	return word
}

// folds is the counter of what has to be said otherwise because of structured data:
// the request to a Coven agent, the answer to a pi client.
func (d *duo) folds() string {
	switch {
	case !d.asks.data && d.answers == coven.Name:
		return "" // nothing but words on the way through the hub
	case !d.asks.data:
		return "pi.folded.data"
	case d.answers == coven.Name:
		return "coven.folded.opened"
	}
	return ""
}

// counts wants the hub to count one more while something is done.
func (d *duo) counts(t *testing.T, counter string, do func()) {
	t.Helper()
	before := d.service.Hub().Counters()[counter]
	do()
	if got := d.service.Hub().Counters()[counter]; counter != "" && got != before+1 {
		t.Errorf("got %s counted from %d to %d, want one more", counter, before, got)
	}
}

// fencedJSON reads what a Coven agent writes below its words: a heading and JSON in
// a fence that does not occur in it.
func fencedJSON(text string) (json.RawMessage, bool) {
	text, heading := strings.CutPrefix(text, "\n\nData:\n")
	fence := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	text, open := strings.CutPrefix(text, fence+"json\n")
	text, closed := strings.CutSuffix(text, "\n"+fence)
	return json.RawMessage(text), heading && len(fence) >= 3 && open && closed && !strings.Contains(text, fence)
}

// longText asks with 900 KB for the same 900 KB: below the limits of 1 MB that
// Parallax, ACP and REST have for a message. A pi client may not say so much at once,
// and gets what it asks for briefly.
func longText(t *testing.T, d *duo) string {
	got := d.ask(t, "echo "+d.key()+"\n"+bigText)
	if refused := d.asks.longQuestion; refused != nil {
		same(t, got, *refused)
		same(t, d.ask(t, "big "+d.key()), d.answer(bigText))
		return "answer; question refused"
	}
	same(t, got, d.answer(bigText))
	return "both ways"
}

// failure lets the agent fail with every code, and expects the words that the
// tables of the two dialects give it.
func failure(t *testing.T, d *duo) string {
	codes := slices.DeleteFunc(core.Codes(), func(c core.Code) bool { return c == core.CodeCancelled }) // no failure: see cancelMidway
	for _, code := range codes {
		f := scriptedFault(code)
		f.Code = asAgentSays(d.answers, code)
		t.Run(string(code), func(t *testing.T) {
			same(t, d.ask(t, "fail "+d.key()+" "+string(code)), d.asks.failed(f))
		})
	}
	if d.asks.failed(scriptedFault(core.CodeInternal)).Code == "" {
		return fmt.Sprintf("%d messages", len(codes))
	}
	return fmt.Sprintf("%d codes", len(codes))
}

// asAgentSays is what remains of a code that an agent of the dialect fails with:
// ACP has one word for two of them.
func asAgentSays(dialect string, code core.Code) core.Code {
	if dialect == acp.Dialect {
		switch code {
		case core.CodeUnauthenticated:
			return core.CodeNotAuthorized
		case core.CodeUnknownTask:
			return core.CodeUnknownAgent
		}
	}
	return code
}

// midway asks for something and waits until half of the answer has come.
func (d *duo) midway(t *testing.T, r requester, q inquiry) (key string, x *exchange) {
	t.Helper()
	key = d.key()
	q.to, q.content, q.deadline = cmp.Or(q.to, string(d.agent)), "hang "+key, cmp.Or(q.deadline, ample)
	x = r.begin(q)
	d.await(t, key+d.underway())
	if d.inPieces() {
		x.hear(t, firstHalf)
	}
	return key, x
}

// half is the end that want words, behind the half of an answer.
func (d *duo) half(want telling) telling {
	if d.inPieces() {
		want.Text, want.Pieces = firstHalf, 1
	}
	return want
}

// stopped waits until the agent's handler has returned, and wants it to have been
// told to stop.
func (d *duo) stopped(t *testing.T, key string) {
	t.Helper()
	if err, _ := d.await(t, key+" returned").(error); err == nil {
		t.Errorf("got the handler of the agent to its end, want it stopped")
	}
}

func cancelMidway(t *testing.T, d *duo) string {
	key, x := d.midway(t, d.requester, inquiry{delegate: d.asks.delegates})
	const reason = "nobody wants it any more"
	ctx, stop := context.WithTimeout(t.Context(), watchdog)
	defer stop()
	if err := x.cancel(ctx, reason); err != nil {
		t.Fatalf("cancel: got %v, want no error", err)
	}
	want := d.half(d.asks.cancelled(reason))
	if d.asks.delegates && d.answers != gatewayName {
		want.Text = firstHalf // the result has it
	}
	same(t, x.outcome(t), want)
	if end, ok := d.end(t, key).(core.Cancelled); !ok {
		t.Errorf("got the end %#v at the hub, want it cancelled", end)
	}
	d.stopped(t, key)
	return want.End + sep(want.Code)
}

func sep(code string) string {
	if code == "" {
		return ""
	}
	return " " + code
}

// deadlinePasses asks for what takes longer than it may. A pi client cannot say how
// long: it has what the hub is set to.
func deadlinePasses(t *testing.T, d *duo) string {
	const short = 300 * time.Millisecond
	if !d.asks.deadlines {
		s := newStage(t, func(c *config.Config) { c.Pi.PromptTimeout = short })
		d = &duo{stage: s, asks: d.asks, answers: d.answers, agent: d.agent}
		s.cast(t, d.answers, d.agent, 1)
		d.requester = d.asks.connect(t, s, "asker")
		defer d.leave()
	}
	key := d.key()
	x := d.begin(inquiry{to: string(d.agent), content: "hang " + key, deadline: short})
	want := d.asks.failed(core.NewFault(core.CodeTimeout, ""))
	if !d.asks.deadlines {
		want = telling{End: "timed out", Words: "Command 'prompt' timed out after 300ms"}
	}
	got := x.outcome(t)
	if got.Pieces > 0 {
		want = d.half(want)
	}
	same(t, got, want)
	end, ok := d.end(t, key).(core.Failed)
	if !ok || end.Fault.Code != core.CodeTimeout {
		t.Errorf("got the end %#v at the hub, want a failure of code timeout", end)
	}
	if _, begun := d.posted(key + " begun"); begun {
		d.stopped(t, key)
	}
	return cmp.Or(want.Code, want.End)
}

// agentCutOff resets the agent's connection in the middle of an answer: it never
// passes for a whole one.
func agentCutOff(t *testing.T, d *duo) string {
	const id = "mortal"
	cable := d.cast(t, d.answers, id, 1)
	key, x := d.midway(t, d.requester, inquiry{to: id})
	cable.cut()
	d.await(t, "left "+id)
	got := x.outcome(t)
	want := d.half(d.asks.failed(core.NewFault(core.CodeUnreachable, "agent %s left", id)))
	if !strings.Contains(got.Words, want.Words) {
		t.Errorf("got the words %q, want %q in them", got.Words, want.Words)
	}
	want.Words = ""
	same(t, got, want)
	d.stopped(t, key)
	return cmp.Or(want.Code, want.End)
}

func askerCutOff(t *testing.T, d *duo) string { return d.asks.afterCut(t, d) }

// dropped wants what was asked to be cancelled, with the agent told.
func (d *duo) dropped(t *testing.T, key string) {
	t.Helper()
	if end, ok := d.end(t, key).(core.Cancelled); !ok {
		t.Errorf("got the end %#v at the hub, want it cancelled", end)
	}
	d.stopped(t, key)
}

// finished lets the agent go on, and wants what was asked to be done.
func (d *duo) finished(t *testing.T, key string) {
	t.Helper()
	d.post(key+" released", nil)
	if end, ok := d.end(t, key).(core.Done); !ok {
		t.Errorf("got the end %#v at the hub, want it done", end)
	}
}

// unknownAgent asks for somebody who is not there; the refusal names the nearest.
func unknownAgent(t *testing.T, d *duo) string {
	q := d.inquiry("say " + d.key())
	q.to += "x"
	var got telling
	d.counts(t, "refused.unknown_agent", func() { got = d.begin(q).outcome(t) })
	want := d.asks.refused(core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", d.agent+"x", d.agent))
	if !strings.HasPrefix(got.Words, want.Words) {
		t.Errorf("got the words %q, want them to begin %q", got.Words, want.Words)
	}
	want.Words = ""
	same(t, got, want)
	return cmp.Or(want.Code, want.End)
}

// fullQueue asks an agent that does one thing at a time three things, on a hub where
// one may wait: one of the later two is refused, the others are answered.
func fullQueue(t *testing.T, d *duo) string {
	const id = "single"
	d.cast(t, d.answers, id, 1)
	first, x := d.midway(t, d.requester, inquiry{to: id})
	keys := []string{d.key(), d.key()}
	var later []*exchange
	for _, key := range keys {
		later = append(later, d.begin(inquiry{to: id, content: "hang " + key, deadline: ample}))
		d.post(key+" released", nil)
	}
	refused := 0
	select {
	case <-later[0].ended:
	case <-later[1].ended:
		refused = 1
	case <-time.After(watchdog):
		t.Fatal("got neither refused, want one of them")
	}
	want := d.asks.refused(core.NewFault(core.CodeOverloaded, "%s has no room: its queue of 1 is full; ask again later", id))
	same(t, later[refused].outcome(t), want)
	d.post(first+" released", nil)
	same(t, x.outcome(t), d.answer(firstHalf+secondHalf))
	same(t, later[1-refused].outcome(t), d.answer(firstHalf+secondHalf))
	return cmp.Or(want.Code, want.End)
}
