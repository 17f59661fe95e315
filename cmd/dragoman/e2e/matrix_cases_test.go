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

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// wantAnswer returns the outcome of a text answer in the requester's dialect.
func (d *pair) wantAnswer(text string) outcome {
	want := d.asks.done
	want.Text = text
	if d.asks.streams {
		want.Chunks = 1
	}
	return want
}

func shortText(t *testing.T, d *pair) string {
	key := d.key()
	wantResult(t, d.ask(t, "say "+key), d.wantAnswer(shortAnswer(key)))
	return "ok"
}

// burst requests burstChunks chunks. They arrive complete and in order, in chunks where the dialect has
// them.
func burst(t *testing.T, d *pair) string {
	wantResult(t, d.ask(t, "burst "+d.key()), d.wantAnswer(wholeBurst))
	if d.streamed() {
		return "in pieces"
	}
	return "folded"
}

// structuredData sends structured data and asks for some. An agent whose dialect has no field for
// either gets, and answers with, JSON in a fenced block. A pi client sends and gets text.
func structuredData(t *testing.T, d *pair) string {
	act := "data " + d.key()
	q := d.query(act)
	want := dataAnswer{Content: act, Data: json.RawMessage("null")}
	switch {
	case !d.asks.data:
	case d.answers.fences:
		q.data = json.RawMessage(testData)
		want.Content += "\n\nData:\n```json\n" + testData + "\n```"
	case d.answers.data != nil:
		q.data = json.RawMessage(testData)
		want.Data = d.answers.data(q.data)
	default:
		q.data = json.RawMessage(testData)
		want.Data = q.data
	}
	var got outcome
	d.wantCounted(t, d.foldCounter(), func() { got = d.begin(q).wait(t) })
	data := got.Data
	got.Data = nil
	wantResult(t, outcome{Text: got.Text[:min(len(dataText), len(got.Text))]}, outcome{Text: dataText})
	rest := got.Text[min(len(dataText), len(got.Text)):]
	got.Text = ""
	wantEnd := d.wantAnswer("")
	wantResult(t, got, wantEnd)
	label := "native"
	switch {
	case d.answers.fences:
		label = "folded, fence"
		inner, ok := fencedJSON(rest)
		if !ok || data != nil {
			t.Errorf("got the text %q and the data %s, want JSON in a fence and no data", rest, data)
		}
		data = inner
	case !d.asks.data:
		label = "folded, text"
		data = json.RawMessage(rest)
	case rest != "":
		t.Errorf("got the text %q behind %q, want none", rest, dataText)
	}
	if !sameJSON(data, plainJSON(want)) {
		t.Errorf("\ngot  %s\nwant %s", data, plainJSON(want))
	}
	return label
}

// foldCounter returns the counter that counts the folding of structured data: in the request to an
// agent, or in the answer to a client, without data.
func (d *pair) foldCounter() string {
	switch {
	case d.asks.data:
		return d.answers.folds
	case d.answers.fences:
		return "" // only text passes through the hub
	}
	return cmp.Or(d.asks.foldsData, "pi.folded.data")
}

// wantCounted wants the counter to increase by one while do runs.
func (d *pair) wantCounted(t *testing.T, counter string, do func()) {
	t.Helper()
	before := d.service.Hub().Counters()[counter]
	do()
	if got := d.service.Hub().Counters()[counter]; counter != "" && got != before+1 {
		t.Errorf("got %s counted from %d to %d, want one more", counter, before, got)
	}
}

// fencedJSON parses what a Coven agent writes below its text: a heading and JSON in a fence that
// does not occur in it.
func fencedJSON(text string) (json.RawMessage, bool) {
	text, heading := strings.CutPrefix(text, "\n\nData:\n")
	fence := text[:len(text)-len(strings.TrimLeft(text, "`"))]
	text, open := strings.CutPrefix(text, fence+"json\n")
	text, closed := strings.CutSuffix(text, "\n"+fence)
	return json.RawMessage(text), heading && len(fence) >= 3 && open && closed && !strings.Contains(text, fence)
}

// longText sends bigText and gets the same back. A pi client may not send as much and asks for a long
// answer instead.
func longText(t *testing.T, d *pair) string {
	got := d.ask(t, "echo "+d.key()+"\n"+bigText)
	if refused := d.asks.longRequest; refused != nil {
		wantResult(t, got, *refused)
		wantResult(t, d.ask(t, "big "+d.key()), d.wantAnswer(bigText))
		return "answer; question refused"
	}
	wantResult(t, got, d.wantAnswer(bigText))
	return "both ways"
}

// failure has the agent fail with every code and wants what the tables of the two dialects map it
// to.
func failure(t *testing.T, d *pair) string {
	codes := slices.DeleteFunc(core.Codes(), func(c core.Code) bool { return c == core.CodeCancelled }) // no failure: see cancelMidway
	for _, code := range codes {
		f := testFault(code)
		if d.answers.failed != nil {
			f = d.answers.failed(f)
		}
		t.Run(string(code), func(t *testing.T) {
			wantResult(t, d.ask(t, "fail "+d.key()+" "+string(code)), d.asks.failed(f))
		})
	}
	if d.asks.failed(testFault(core.CodeInternal)).Code == "" {
		return fmt.Sprintf("%d messages", len(codes))
	}
	return fmt.Sprintf("%d codes", len(codes))
}

// startHalf starts a query and waits for the first half of the answer.
func (d *pair) startHalf(t *testing.T, r requester, q query) (key string, x *exchange) {
	t.Helper()
	key = d.key()
	q.to, q.content, q.deadline = cmp.Or(q.to, string(d.agent)), "hang "+key, cmp.Or(q.deadline, ample)
	x = r.begin(q)
	d.await(t, key+d.startedSignal())
	if d.streamed() {
		x.waitText(t, firstHalf)
	}
	return key, x
}

// halfAnswer returns an outcome that ends after half of the answer.
func (d *pair) halfAnswer(want outcome) outcome {
	if d.streamed() {
		want.Text, want.Chunks = firstHalf, 1
	}
	return want
}

// wantStopped waits until the agent's handler has returned, and wants it to have been cancelled.
func (d *pair) wantStopped(t *testing.T, key string) {
	t.Helper()
	if err, _ := d.await(t, key+" returned").(error); err == nil {
		t.Errorf("got the handler of the agent to its end, want it stopped")
	}
}

func cancelMidway(t *testing.T, d *pair) string {
	key, x := d.startHalf(t, d.requester, query{delegate: d.asks.delegates})
	const reason = "no longer needed"
	ctx, stop := context.WithTimeout(t.Context(), watchdog)
	defer stop()
	if err := x.cancel(ctx, reason); err != nil {
		t.Fatalf("cancel: got %v, want no error", err)
	}
	want := d.halfAnswer(d.asks.cancelled(reason))
	if d.asks.delegates && !d.answers.atOnce {
		want.Text = firstHalf // the result repeats it
	}
	wantResult(t, x.wait(t), want)
	if end, ok := d.end(t, key).(core.Cancelled); !ok {
		t.Errorf("got the end %#v at the hub, want it cancelled", end)
	}
	d.wantStopped(t, key)
	return want.End + sep(want.Code)
}

func sep(code string) string {
	if code == "" {
		return ""
	}
	return " " + code
}

// deadlinePasses starts a query that exceeds its deadline. A client of pi-server or A2A, or an
// editor, cannot set one: the hub's setting counts.
func deadlinePasses(t *testing.T, d *pair) string {
	const short = 300 * time.Millisecond
	if !d.asks.deadlines {
		h := newTestHub(t, func(c *config.Config) { c.Pi.PromptTimeout, c.A2A.Deadline, c.Editor.Deadline = short, short, short })
		d = &pair{testHub: h, asks: d.asks, answers: d.answers, agent: d.agent}
		d.answers.start(t, h, d.agent, 1)
		d.requester = d.asks.connect(t, h, "asker")
		defer d.leave()
	}
	key := d.key()
	x := d.begin(query{to: string(d.agent), content: "hang " + key, deadline: short})
	want := d.asks.failed(core.NewFault(core.CodeTimeout, ""))
	if d.asks.late.End != "" {
		want = d.asks.late
	}
	got := x.wait(t)
	if got.Chunks > 0 {
		want = d.halfAnswer(want)
	}
	wantResult(t, got, want)
	end, ok := d.end(t, key).(core.Failed)
	if !ok || end.Fault.Code != core.CodeTimeout {
		t.Errorf("got the end %#v at the hub, want a failure of code timeout", end)
	}
	if _, begun := d.signalled(key + " begun"); begun {
		d.wantStopped(t, key)
	}
	return cmp.Or(want.Code, want.End)
}

// agentCutOff resets the agent's connection in the middle of an answer, which must not look
// complete.
func agentCutOff(t *testing.T, d *pair) string {
	const id = "mortal"
	cut := d.answers.start(t, d.testHub, id, 1)
	key, x := d.startHalf(t, d.requester, query{to: id})
	cut()
	d.await(t, "left "+id)
	got := x.wait(t)
	want := d.halfAnswer(d.asks.failed(core.NewFault(core.CodeUnreachable, "%s", strings.ReplaceAll(d.answers.lost, "$ID", id))))
	if !strings.Contains(got.Message, want.Message) {
		t.Errorf("got the message %q, want %q in it", got.Message, want.Message)
	}
	want.Message = ""
	wantResult(t, got, want)
	d.wantStopped(t, key)
	return cmp.Or(want.Code, want.End)
}

func askerCutOff(t *testing.T, d *pair) string { return d.asks.reconnects(t, d) }

// wantCancelled wants the query to be cancelled and the agent to know.
func (d *pair) wantCancelled(t *testing.T, key string) {
	t.Helper()
	if end, ok := d.end(t, key).(core.Cancelled); !ok {
		t.Errorf("got the end %#v at the hub, want it cancelled", end)
	}
	d.wantStopped(t, key)
}

// finish lets the agent continue and wants the query to end as done.
func (d *pair) finish(t *testing.T, key string) {
	t.Helper()
	d.signal(key+" released", nil)
	if end, ok := d.end(t, key).(core.Done); !ok {
		t.Errorf("got the end %#v at the hub, want it done", end)
	}
}

// unknownAgent asks an agent that does not exist; the refusal suggests the nearest id.
func unknownAgent(t *testing.T, d *pair) string {
	q := d.query("say " + d.key())
	q.to += "x"
	var got outcome
	d.wantCounted(t, "refused.unknown_agent", func() { got = d.begin(q).wait(t) })
	want := d.asks.refused(core.NewFault(core.CodeUnknownAgent, "no agent %q is here; the nearest: %s", d.agent+"x", d.agent))
	if !strings.HasPrefix(got.Message, want.Message) {
		t.Errorf("got the message %q, want the prefix %q", got.Message, want.Message)
	}
	want.Message = ""
	wantResult(t, got, want)
	return cmp.Or(want.Code, want.End)
}

// fullQueue sends three queries to an agent that runs one at a time, on a hub whose queue holds
// one: one of the later two is refused, the others are answered.
func fullQueue(t *testing.T, d *pair) string {
	const id = "single"
	d.answers.start(t, d.testHub, id, 1)
	first, x := d.startHalf(t, d.requester, query{to: id})
	keys := []string{d.key(), d.key()}
	var later []*exchange
	for _, key := range keys {
		later = append(later, d.begin(query{to: id, content: "hang " + key, deadline: ample}))
		d.signal(key+" released", nil)
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
	wantResult(t, later[refused].wait(t), want)
	d.signal(first+" released", nil)
	wantResult(t, x.wait(t), d.wantAnswer(firstHalf+secondHalf))
	wantResult(t, later[1-refused].wait(t), d.wantAnswer(firstHalf+secondHalf))
	return cmp.Or(want.Code, want.End)
}

// twoAtOnce has two queries run at the same time. The later one ends first, and neither gets text of
// the other.
func twoAtOnce(t *testing.T, d *pair) string {
	first, x := d.startHalf(t, d.requester, query{})
	second, y := d.startHalf(t, d.requester, query{})
	for _, ends := range []struct {
		key string
		*exchange
	}{{second, y}, {first, x}} {
		d.signal(ends.key+" released", nil)
		wantResult(t, ends.wait(t), d.wantAnswer(firstHalf+secondHalf))
	}
	return "apart"
}
