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

// asked is what a request says, as far as it is translated.
type asked struct {
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

func (a asked) request(to core.AgentID) core.Request {
	return core.Request{
		Intent: a.Intent, To: core.ToAgent(to), Content: a.Content, Data: a.Data, Context: a.Context, Attachments: a.Attachments,
		Thread: a.Thread, Domain: a.Domain, Priority: a.Priority, MaxTokens: a.MaxTokens, ReportBack: a.ReportBack,
	}
}

func askedOf(r core.Request) asked {
	a := asked{r.Intent, r.Content, r.Data, r.Context, r.Attachments, r.Thread, r.Domain, r.Priority, r.MaxTokens, r.ReportBack}
	if a.Priority == 0 {
		a.Priority = core.PriorityNormal
	}
	return a
}

// answered is what an answer says, as far as it is translated.
type answered struct {
	Text      string
	Data      json.RawMessage
	Truncated bool
	Files     []core.File
	Calls     []core.ToolCall
	Results   []core.ToolResult
}

// note takes in one thing that was said.
func (a *answered) note(b core.Body) {
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

// speaker is a dialect of who asks, over a connection in memory.
type interviewer struct {
	name string
	// says is what remains of a request that the dialect has words for.
	says func(asked) asked
	// hears is what remains of an answer.
	hears func(answered) answered
	// open connects somebody, who asks for as long as the test runs.
	open func(t *testing.T, h *hub.Hub) func(tb rapid.TB, a asked) answered
}

// respondent is a dialect of who answers.
type respondent struct {
	name string
	gets func(asked) asked
	says func(answered) answered
	join func(t *testing.T, h *hub.Hub, card core.Card, handle core.Handler)
}

func respondents() []respondent {
	return []respondent{
		{coven.Name, foldedForCoven, foldedByCoven, joinCovenInMemory},
		{parallax.Dialect, unchanged[asked], unchanged[answered], joinParallaxInMemory},
		{acp.Dialect, func(a asked) asked {
			// It has no word for a thread, whose turns are told instead; a query has no
			// priority, a delegate none that is low; an outcome is always wanted back.
			if a.Intent != core.IntentDelegate || a.Priority == core.PriorityLow {
				a.Priority = core.PriorityNormal
			}
			a.Thread, a.ReportBack = "", true
			return a
		}, wordedByACP, joinACPInMemory},
	}
}

func unchanged[V any](v V) V { return v }

// foldedForCoven is a request as its SendMessage: what has no field stands below the
// content. Intent, priority and whether an outcome is wanted are the hub's business.
func foldedForCoven(a asked) asked {
	parts := []string{a.Content}
	if a.Data != nil {
		parts = append(parts, inFence("Data", a.Data))
	}
	if a.Context != nil {
		parts = append(parts, inFence("Context", a.Context))
	}
	if a.Domain != "" {
		parts = append(parts, "Domain: "+a.Domain)
	}
	if a.MaxTokens > 0 {
		parts = append(parts, fmt.Sprintf("Answer in at most %d tokens.", a.MaxTokens))
	}
	return asked{
		Intent: core.IntentAsk, Priority: core.PriorityNormal, Content: strings.Join(parts, "\n\n"), Attachments: a.Attachments, Thread: a.Thread,
	}
}

// foldedByCoven is an answer whose structure became text, and whose end says nothing
// of having been cut.
func foldedByCoven(a answered) answered {
	if a.Data != nil {
		if a.Text != "" {
			a.Text += "\n\n"
		}
		a.Text += inFence("Data", a.Data)
	}
	a.Data, a.Truncated = nil, false
	return a
}

// wordedByACP is an answer that has words, but where its structure says all: in ACP what
// an answer says in words is never empty.
func wordedByACP(a answered) answered {
	switch {
	case a.Text != "" || len(a.Data) > 0 && (a.Data[0] == '{' || a.Data[0] == '['):
	case a.Data != nil:
		a.Text = string(a.Data)
	default:
		a.Text = "done"
	}
	return a
}

// inFence is JSON under a heading, in the shortest fence that does not occur in it.
func inFence(heading string, data []byte) string {
	fence := "```"
	for bytes.Contains(data, []byte(fence)) {
		fence += "`"
	}
	return heading + ":\n" + fence + "json\n" + string(data) + "\n" + fence
}

// What goes in at one dialect comes out at the other, both ways, for every pair: the
// ids, the flags and every value, but for what the dialects declare to fold.
func TestIDsOrFlagsLostInTranslation(t *testing.T) {
	for _, asks := range interviewers() {
		for _, answers := range respondents() {
			t.Run(asks.name+" asks "+answers.name, func(t *testing.T) {
				who := &arrivals{}
				h := coretest.NewHub(t, hub.Options{Observer: who})
				given, wanted := make(chan asked, 1), make(chan []core.Body, 1)
				card := core.Card{ID: "answerer", Features: core.FeatureStreaming | core.FeatureFiles | core.FeatureUsage}
				answers.join(t, h, card, func(_ context.Context, r core.Request, say func(core.Body) error) error {
					given <- askedOf(r)
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
					for len(wanted)+len(given) > 0 { // what a failure left behind
						select {
						case <-wanted:
						case <-given:
						}
					}
					keys := objectKeys
					if answers.name == acp.Dialect || strings.HasPrefix(asks.name, "ACP") {
						keys = without(keys, "data", "files", "history") // there they mean those of the request
					}
					in := asks.says(drawAsked(rt, keys))
					bodies := drawAnswer(rt, asks.name)
					wanted <- bodies
					out := ask(rt, in)
					var got asked
					select {
					case got = <-given:
					default:
						rt.Fatal("it was answered and not asked")
					}
					want := answers.gets(in)
					if want.Thread == "" && answers.name != acp.Dialect {
						got.Thread = "" // the hub named it
					}
					if d := cmp.Diff(want, got, sameValues); d != "" {
						rt.Errorf("what the agent was asked (-want +got):\n%s", d)
					}
					var told answered
					for _, b := range bodies {
						told.note(b)
					}
					if d := cmp.Diff(asks.hears(answers.says(told)), out, sameValues); d != "" {
						rt.Errorf("what was answered (-want +got):\n%s", d)
					}
				})
			})
		}
	}
}

// isJSON is where JSON stands, which is compared by its value, with every digit.
func isJSON(p cmp.Path) bool { return p.Last().Type() == reflect.TypeFor[json.RawMessage]() }

var sameValues = cmp.Options{
	cmp.FilterPath(isJSON, cmp.Comparer(func(a, b json.RawMessage) bool { return len(a) == 0 && len(b) == 0 || sameJSON(a, b) })),
	cmp.FilterPath(func(p cmp.Path) bool { return !isJSON(p) }, cmpopts.EquateEmpty()),
}

// objectKeys are such that a dialect might take for its own.
var objectKeys = []string{"data", "files", "history", "content", "context", "value", "thread", "intent", "maxTokens", "ü", "a b", ""}

func without(keys []string, some ...string) []string {
	return slices.DeleteFunc(slices.Clone(keys), func(k string) bool { return slices.Contains(some, k) })
}

// values are JSON that every door lets in (no NUL in a key), without needless escapes.
var values = rapid.Map(coretest.JSON(), func(raw json.RawMessage) json.RawMessage {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(err) // it was drawn as JSON
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

// drawData draws what is not null: that counts as nothing.
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

func drawAsked(t *rapid.T, keys []string) asked {
	a := asked{
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

// drawAnswer draws what an agent says, its end last.
func drawAnswer(t *rapid.T, asker string) []core.Body {
	word := rapid.StringN(1, 20, -1)
	id := rapid.StringMatching(`[a-zA-Z0-9_-]{1,12}`)
	kinds := []string{"text", "call", "result"}
	if asker != "pi" {
		kinds = append(kinds, "file") // it is told one in words
	}
	var bodies []core.Body
	for range rapid.IntRange(0, 5).Draw(t, "how much is said") {
		switch rapid.SampledFrom(kinds).Draw(t, "kind") {
		case "text":
			bodies = append(bodies, core.Text{Text: word.Draw(t, "text")})
		case "call":
			plain := word.Filter(func(s string) bool { return !json.Valid([]byte(s)) }) // JSON is written anew
			input := rapid.OneOf(plain, rapid.Map(values, func(v json.RawMessage) string { return string(v) })).Draw(t, "input")
			bodies = append(bodies, core.ToolCall{ID: id.Draw(t, "id"), Name: word.Draw(t, "name"), Input: input})
		case "result":
			bodies = append(bodies, core.ToolResult{ID: id.Draw(t, "id"), Output: word.Draw(t, "output"), IsError: rapid.Bool().Draw(t, "is error")})
		case "file":
			for _, f := range drawFiles(t) {
				bodies = append(bodies, f)
			}
		}
	}
	keys := without(objectKeys, "content") // Parallax takes it for words where there are none
	return append(bodies, core.Done{Data: drawData(t, "answer", keys), Truncated: rapid.Bool().Draw(t, "truncated")})
}
