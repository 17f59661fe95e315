package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// requestFields are the fields of a request that dialects translate.
type requestFields struct {
	Intent      core.Intent
	Content     string
	Data        json.RawMessage
	Context     json.RawMessage
	Attachments []core.File
	Thread      core.ThreadID
	Domain      string
	Priority    core.Priority
	MaxTokens   int64
	ReportBack  bool
}

func (a requestFields) request(to core.AgentID) core.Request {
	return core.Request{
		Intent: a.Intent, To: core.ToAgent(to), Content: a.Content, Data: a.Data, Context: a.Context, Attachments: a.Attachments,
		Thread: a.Thread, Domain: a.Domain, Priority: a.Priority, MaxTokens: a.MaxTokens, ReportBack: a.ReportBack,
	}
}

func fieldsOf(r core.Request) requestFields {
	a := requestFields{r.Intent, r.Content, r.Data, r.Context, r.Attachments, r.Thread, r.Domain, r.Priority, r.MaxTokens, r.ReportBack}
	if a.Priority == 0 {
		a.Priority = core.PriorityNormal
	}
	return a
}

// answerFields are the parts of an answer that dialects translate.
type answerFields struct {
	Text      string
	Data      json.RawMessage
	Truncated bool
	Files     []core.File
	Calls     []core.ToolCall
	Results   []core.ToolResult
}

// add adds an event.
func (a *answerFields) add(b core.Body) {
	switch b := b.(type) {
	case core.Text:
		a.Text += b.Text
	case core.File:
		a.Files = append(a.Files, b)
	case core.ToolCall:
		a.Calls = append(a.Calls, b)
	case core.ToolResult:
		a.Results = append(a.Results, b)
	case core.Done:
		a.Data, a.Truncated = b.Data, b.Truncated
		if a.Text == "" {
			a.Text = b.Text
		}
	}
}

// asker is a requester's dialect over a connection in memory.
type asker struct {
	name string
	// keepsOfRequest returns what the dialect can express of a request.
	keepsOfRequest func(requestFields) requestFields
	// keepsOfAnswer returns what the dialect can express of an answer.
	keepsOfAnswer func(answerFields) answerFields
	// open connects a requester until the test ends.
	open func(t *testing.T, h *hub.Hub) func(tb rapid.TB, a requestFields) answerFields
}

// answerer is an agent's dialect.
type answerer struct {
	name           string
	keepsOfRequest func(requestFields) requestFields
	keepsOfAnswer  func(answerFields) answerFields
	join           func(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler)
}

func answerers() []answerer {
	return []answerer{
		{coven.Name, foldedForCoven, foldedByCoven, joinCovenInMemory},
		{parallax.Dialect, unchanged[requestFields], unchanged[answerFields], joinParallaxInMemory},
		{acp.Dialect, func(a requestFields) requestFields {
			// It has no field for a thread, whose turns are sent instead; a query has no
			// priority, a delegate none that is low; report_back is always set.
			if a.Intent != core.IntentDelegate || a.Priority == core.PriorityLow {
				a.Priority = core.PriorityNormal
			}
			a.Thread, a.ReportBack = "", true
			return a
		}, acpAnswer, joinACPInMemory},
	}
}

func unchanged[V any](v V) V { return v }

// foldedForCoven returns a request as its SendMessage: what has no field stands below the content.
// Intent, priority and report_back stay with the hub.
func foldedForCoven(a requestFields) requestFields {
	parts := []string{a.Content}
	if a.Data != nil {
		parts = append(parts, fencedBlock("Data", a.Data))
	}
	if a.Context != nil {
		parts = append(parts, fencedBlock("Context", a.Context))
	}
	if a.Domain != "" {
		parts = append(parts, "Domain: "+a.Domain)
	}
	if a.MaxTokens > 0 {
		parts = append(parts, fmt.Sprintf("Answer in at most %d tokens.", a.MaxTokens))
	}
	return requestFields{
		Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: strings.Join(parts, "\n\n"), Attachments: a.Attachments, Thread: a.Thread,
	}
}

// foldedByCoven returns an answer whose structured data became text, and whose end does not say
// that it was truncated.
func foldedByCoven(a answerFields) answerFields {
	if a.Data != nil {
		if a.Text != "" {
			a.Text += "\n\n"
		}
		a.Text += fencedBlock("Data", a.Data)
	}
	a.Data, a.Truncated = nil, false
	return a
}

// acpAnswer returns an answer as ACP has it: its text is empty only beside an object or an array.
func acpAnswer(a answerFields) answerFields {
	switch {
	case a.Text != "" || len(a.Data) > 0 && (a.Data[0] == '{' || a.Data[0] == '['):
	case a.Data != nil:
		a.Text = string(a.Data)
	default:
		a.Text = "done"
	}
	return a
}

// fencedBlock returns JSON under a heading, in the shortest fence that does not occur in it.
func fencedBlock(heading string, data []byte) string {
	fence := "```"
	for bytes.Contains(data, []byte(fence)) {
		fence += "`"
	}
	return heading + ":\n" + fence + "json\n" + string(data) + "\n" + fence
}

// What enters in one dialect leaves in the other, in both directions and for every pair: the ids,
// the flags and every value, except for what the dialects declare to fold.
func TestIDsOrFlagsLostInTranslation(t *testing.T) {
	t.Parallel()
	for _, asks := range askers() {
		for _, answers := range answerers() {
			t.Run(asks.name+" asks "+answers.name, func(t *testing.T) {
				who := &joinObserver{}
				h := coretest.NewHub(t, hub.Options{Observer: who})
				given, wanted := make(chan requestFields, 1), make(chan []core.Body, 1)
				card := core.Card{ID: "answerer", Features: core.FeatureStreaming | core.FeatureFiles | core.FeatureUsage}
				answers.join(t, h, card, func(_ context.Context, r core.Request, say func(core.Body) error) error {
					given <- fieldsOf(r)
					for _, b := range <-wanted {
						if err := say(b); err != nil {
							return err
						}
					}
					return nil
				})
				if _, err := who.wait(t.Context(), "joined answerer"); err != nil {
					t.Fatal(err)
				}
				ask := asks.open(t, h)
				rapid.Check(t, func(rt *rapid.T) {
					for len(wanted)+len(given) > 0 { // left behind by a failure
						select {
						case <-wanted:
						case <-given:
						}
					}
					keys := objectKeys
					if answers.name == acp.Dialect || strings.HasPrefix(asks.name, "ACP") {
						keys = without(keys, "data", "files", "history") // there they mean the request's own
					}
					in := asks.keepsOfRequest(drawRequest(rt, keys))
					bodies := drawAnswer(rt, asks.name)
					wanted <- bodies
					out := ask(rt, in)
					var got requestFields
					select {
					case got = <-given:
					default:
						rt.Fatal("it was answered and not asked")
					}
					want := answers.keepsOfRequest(in)
					if want.Thread == "" && answers.name != acp.Dialect {
						got.Thread = "" // chosen by the hub
					}
					if d := cmp.Diff(want, got, sameValues); d != "" {
						rt.Errorf("what the agent was asked (-want +got):\n%s", d)
					}
					var received answerFields
					for _, b := range bodies {
						received.add(b)
					}
					if d := cmp.Diff(asks.keepsOfAnswer(answers.keepsOfAnswer(received)), out, sameValues); d != "" {
						rt.Errorf("what was answered (-want +got):\n%s", d)
					}
				})
			})
		}
	}
}

// isJSON selects JSON, which is compared by its value, with every digit.
func isJSON(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() }

var sameValues = cmp.Options{
	cmp.FilterPath(isJSON, cmp.Comparer(func(a, b json.RawMessage) bool { return len(a) == 0 && len(b) == 0 || sameJSON(a, b) })),
	cmp.FilterPath(func(p cmp.Path) bool { return !isJSON(p) }, cmpopts.EquateEmpty()),
}

// objectKeys are keys that a dialect might take for its own.
var objectKeys = []string{"data", "files", "history", "content", "context", "value", "thread", "intent", "maxTokens", "ü", "a b", ""}

func without(keys []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(some, k) })
}

// values are JSON that every interface accepts (no NUL in a key), without needless escapes.
var values = rapid.Map(coretest.JSON(), func(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err) // it was generated as JSON
	}
	return plainJSON(v)
}).Filter(func(v json.RawMessage) bool { return !bytes.Contains(v, []byte(`\u0000`)) })

func drawObject(t *rapid.T, what string, keys []string) json.RawMessage {
	object := map[string]json.RawMessage{}
	for _, key := range rapid.SliceOfNDistinct(rapid.SampledFrom(keys), 1, 3, rapid.ID).Draw(t, what+" keys") {
		object[key] = values.Draw(t, what)
	}
	return plainJSON(object)
}

// drawData draws anything but null, which counts as absent.
func drawData(t *rapid.T, what string, keys []string) json.RawMessage {
	switch rapid.IntRange(0, 2).Draw(t, what+" is") {
	case 0:
		return nil
	case 1:
		return drawObject(t, what, keys)
	}
	return values.Filter(func(v json.RawMessage) bool { return string(v) != "null" }).Draw(t, what)
}

func drawFiles(t *rapid.T) []core.File {
	one := rapid.Custom(func(t *rapid.T) core.File {
		return core.File{
			Name: rapid.StringN(1, 20, -1).Draw(t, "name"), MediaType: rapid.SampledFrom([]string{"", "text/plain", "image/png"}).Draw(t, "media type"),
			Data: rapid.SliceOfN(rapid.Byte(), 1, 64).Draw(t, "bytes"),
		}
	})
	return rapid.SliceOfN(one, 0, 2).Draw(t, "files")
}

func drawRequest(t *rapid.T, keys []string) requestFields {
	a := requestFields{
		Intent:      rapid.SampledFrom([]core.Intent{core.IntentAsk, core.IntentDelegate}).Draw(t, "intent"),
		Content:     rapid.String().Filter(func(s string) bool { return strings.TrimSpace(s) != "" }).Draw(t, "content"),
		Data:        drawData(t, "data", objectKeys),
		Attachments: drawFiles(t),
		Domain:      rapid.StringMatching(`([a-z]{1,5}(\.[a-z]{1,5})?)?`).Draw(t, "domain"),
		Priority:    rapid.SampledFrom([]core.Priority{core.PriorityLow, core.PriorityNormal, core.PriorityUrgent}).Draw(t, "priority"),
		MaxTokens:   rapid.OneOf(rapid.Just(int64(0)), rapid.Int64Range(1, 1<<53)).Draw(t, "max tokens"),
		ReportBack:  rapid.Bool().Draw(t, "report back"),
	}
	if rapid.Bool().Draw(t, "has a context") {
		a.Context = drawObject(t, "context", keys)
	}
	if rapid.Bool().Draw(t, "has a thread") {
		a.Thread = core.ThreadID(core.NewID() + rapid.StringN(0, 20, -1).Draw(t, "thread")) // a fresh one has no history
	}
	return a
}

// drawAnswer draws the events of an answer, the end last.
func drawAnswer(t *rapid.T, asker string) []core.Body {
	label := rapid.StringN(1, 20, -1)
	id := rapid.StringMatching(`[a-zA-Z0-9_-]{1,12}`)
	kinds := []string{"text", "call", "result"}
	if asker != "pi" {
		kinds = append(kinds, "file") // pi gets a file as text
	}
	var bodies []core.Body
	for range rapid.IntRange(0, 5).Draw(t, "number of events") {
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "text":
			bodies = append(bodies, core.Text{Text: label.Draw(t, "text")})
		case "call":
			plain := label.Filter(func(s string) bool { return !json.Valid([]byte(s)) }) // JSON is reformatted
			input := rapid.OneOf(plain, rapid.Map(values, func(v json.RawMessage) string { return string(v) })).Draw(t, "input")
			bodies = append(bodies, core.ToolCall{ID: id.Draw(t, "id"), Name: label.Draw(t, "name"), Input: input})
		case "result":
			bodies = append(bodies, core.ToolResult{ID: id.Draw(t, "id"), Output: label.Draw(t, "output"), IsError: rapid.Bool().Draw(t, "is error")})
		case "file":
			for _, f := range drawFiles(t) {
				bodies = append(bodies, f)
			}
		}
	}
	keys := without(objectKeys, "content") // Parallax takes it for the text if there is none
	return append(bodies, core.Done{Data: drawData(t, "answer", keys), Truncated: rapid.Bool().Draw(t, "truncated")})
}
