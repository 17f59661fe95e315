package redact_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
)

const secret = "hunter2-correct-horse"

func compile(t testing.TB, patterns []string, secrets ...string) *redact.Redactor {
	t.Helper()
	r, err := redact.New(patterns, secrets)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestTextIsRedacted(t *testing.T) {
	r := compile(t, []string{`sk-[a-z0-9]{8,}`, `\b\d{4}-\d{4}\b`}, secret, "hunter2-", "короткий", "tiny")
	for text, want := range map[string]string{
		"":                                       "",
		"nothing here":                           "nothing here",
		"the password is " + secret + ".":        "the password is [redacted].",
		secret + secret:                          "[redacted][redacted]",
		"hunter2-other":                          "[redacted]other",
		"key sk-abcdefgh1, card 1234-5678 end":   "key [redacted], card [redacted] end",
		"x1234-56789":                            "x1234-56789",
		"что короткий":                           "что [redacted]",
		"sk-" + secret:                           "sk-[redacted]",
		"too short: tiny, and sk-abc":            "too short: tiny, and sk-abc",
		"sk-abcdefgh." + secret + "sk-abcdefgh1": "[redacted].[redacted][redacted]",
	} {
		if got := r.Text(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	var none *redact.Redactor
	if got := none.Text(secret); got != secret {
		t.Errorf("without a redactor: got %q, want the text", got)
	}
	if r, err := redact.New(nil, []string{"tiny"}); r != nil || err != nil {
		t.Errorf("with short secrets alone: got %v and %v, want none", r, err)
	}
	for pattern, want := range map[string]string{"(": "missing closing", "a*": "matches the empty text"} {
		if _, err := redact.New([]string{pattern}, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", pattern, err, want)
		}
	}
}

func TestJSONStaysJSON(t *testing.T) {
	r := compile(t, []string{`"pin":\s*\d+`, `4711471147`}, "new\nline\"secret", secret)
	for raw, want := range map[string]string{
		`{"a":"` + secret + `","b":[1]}`:            `{"a":"[redacted]","b":[1]}`,
		`{"a":"x new\nline\"secret\u0021"}`:         `{"a":"x [redacted]!"}`,
		`{"a":"\u0068unter2-correct-horse", "b":1}`: `{"a":"[redacted]", "b":1}`,
		`{"pin": 123}`:                 `"[redacted]"`,
		`[4711471147]`:                 `"[redacted]"`,
		`{"z":1,"a":2,"a":"plain\n"}`:  `{"z":1,"a":2,"a":"plain\n"}`,
		`{"broken":"` + secret:         `{"broken":"[redacted]`,
		`{"` + secret + `":"\n"}`:      `{"[redacted]":"\n"}`,
		`"\u0068unter2-correct-horse\`: `"\u0068unter2-correct-horse\`,
	} {
		if got := string(r.JSON(json.RawMessage(raw))); got != want {
			t.Errorf("%s: got %s, want %s", raw, got, want)
		}
	}
}

func always(r *redact.Redactor) func() *redact.Redactor {
	return func() *redact.Redactor { return r }
}

// pieces makes events of text, or of thinking.
func pieces(thinking bool, all ...string) (events []core.Event) {
	for i, text := range all {
		var b core.Body = core.Text{Text: text}
		if thinking {
			b = core.Thinking{Text: text}
		}
		events = append(events, core.Event{Seq: uint64(i) + 1, Body: b})
	}
	return events
}

// texts returns the text of each event.
func texts(events []core.Event) (all []string) {
	for _, e := range events {
		switch b := e.Body.(type) {
		case core.Text:
			all = append(all, b.Text)
		case core.Thinking:
			all = append(all, b.Text)
		default:
			all = append(all, "<"+b.Kind().String()+">")
		}
	}
	return all
}

func join(all []string) string { return strings.Join(all, "|") }

func TestASecretThatIsSplitIsFound(t *testing.T) {
	for name, c := range map[string]struct {
		patterns, pieces []string
		now, want        string // what is ready before the end, and all
	}{
		"over two pieces":        {nil, []string{"it is hunter2-cor", "rect-horse, ok"}, "it is [redacted]|, ok", "it is [redacted]|, ok"},
		"byte for byte":          {nil, strings.Split("a"+secret+"b", ""), "a|[redacted]" + strings.Repeat("|", len(secret)) + "b", "a|[redacted]" + strings.Repeat("|", len(secret)) + "b"},
		"not at all":             {nil, []string{"it is hunter2-cor", "nered"}, "it is hunter2-cor|nered", "it is hunter2-cor|nered"},
		"cut off by the end":     {nil, []string{"it is ", "hunter2-cor"}, "it is ", "it is |hunter2-cor"},
		"twice in a row":         {nil, []string{secret[:5], secret[5:] + secret[:3], secret[3:]}, "[redacted]|[redacted]|", "[redacted]|[redacted]|"},
		"by a pattern":           {[]string{`sk-[a-z]{8}`}, []string{"a s", "k-abcd", "efgh", "ij"}, "a [redacted]|||ij", "a [redacted]|||ij"},
		"by one without a bound": {[]string{`sk-[a-z]{8,}`}, []string{"sk-abcd", "efgh", "ij", "kl m"}, "[redacted]||| m", "[redacted]||| m"},
		"by one that never ends": {[]string{`sk-[a-z]{8,}`}, []string{"sk-abcd", "efgh", "ij"}, "", "[redacted]||"},
		"by one with classes":    {[]string{`[0-9]{4}-[0-9]{4}`}, []string{"12", "34-56", "78 and so on, and so on, and so on"}, "", "[redacted]|| and so on, and so on, and so on"},
		"over lines":             {[]string{`(?s)-----BEGIN.*?END-----`}, []string{"key:\n-----BEG", "IN KEY\nabc\n", "-----END-----", "\nok"}, "key:\n[redacted]|||\nok", "key:\n[redacted]|||\nok"},
		"empty pieces":           {nil, []string{"", "hunter2-", "", "correct-horse", ""}, "|[redacted]|||", "|[redacted]|||"},
	} {
		for _, thinking := range []bool{false, true} {
			tasks := redact.NewTasks(always(compile(t, c.patterns, secret)))
			var out []core.Event
			for _, e := range pieces(thinking, c.pieces...) {
				out = tasks.Add(out, "t", []core.Event{e}, time.Now())
			}
			if name != "by one with classes" {
				if got := join(texts(out)); got != c.now {
					t.Errorf("%s: got %q before the end, want %q", name, got, c.now)
				}
			}
			out = tasks.Add(out, "t", []core.Event{{Seq: uint64(len(c.pieces)) + 1, Body: core.Done{}}}, time.Now())
			if got, want := join(texts(out)), c.want+"|<done>"; got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
	}
}

func TestNothingIsHeldBackForLong(t *testing.T) {
	tasks, now := redact.NewTasks(always(compile(t, nil, secret))), time.Now()
	events := pieces(false, "it is hunter2-", "correct", "-horse and more")
	out := tasks.Add(nil, "t", []core.Event{events[0], {Seq: 2, Body: core.ToolCall{ID: "1"}}}, now)
	if len(out) != 0 {
		t.Errorf("got %q at once, want it held back", texts(out))
	}
	if all, wait := tasks.Due(now.Add(time.Millisecond)); len(all) > 0 || wait != redact.HoldTime-time.Millisecond {
		t.Errorf("got %v and a wait of %v, want nothing yet", all, wait)
	}
	all, wait := tasks.Due(now.Add(redact.HoldTime))
	if len(all) != 1 || all[0].Task != "t" || join(texts(all[0].Events)) != "it is hunter2-|<tool_call>" || wait != 0 {
		t.Fatalf("got %+v and a wait of %v, want what was held back", all, wait)
	}
	out = tasks.Add(nil, "t", events[1:], now.Add(2*redact.HoldTime))
	if got := join(texts(out)); got != "[redacted]| and more" {
		t.Errorf("got %q, want the rest of the secret redacted", got)
	}
	tasks.Add(nil, "u", pieces(false, "hunter"), now)
	if all := tasks.Flush(); len(all) != 1 || join(texts(all[0].Events)) != "hunter" {
		t.Errorf("got %+v, want the rest", all)
	}
}

// TestNoSecretLeaksHoweverItIsSplit checks that pieces together are the redacted text, and that
// every event comes once and in order.
func TestNoSecretLeaksHoweverItIsSplit(t *testing.T) {
	// Where every pattern begins with literal text, most text is not searched in detail.
	for name, r := range map[string]*redact.Redactor{
		"with any pattern":               compile(t, []string{`key-[a-c]{2,6}\b`, `[#!]\d{2}`, `(?s)<<.*?>>`}, "aabbaabb", "bbaabbcc", secret),
		"with patterns that begin plain": compile(t, []string{`key-[a-c]{2,6} `, `(?s)<<.*?>>`, `<a+b`, `b 12`}, "aabbaabb", "bbaabbcc", secret),
		"with secrets":                   compile(t, nil, "aabbaabb", "bbaabbcc", secret),
	} {
		t.Run(name, func(t *testing.T) { checkNoLeak(t, r) })
	}
}

func checkNoLeak(t *testing.T, r *redact.Redactor) {
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "aabb", "bbcc", "key-", "ab ", "12", "#34", "!5", "<", "<<", ">>", "hunter2-", "correct-horse", " ", "é"}), 0, 30).Draw(t, "words"), "")
		tasks, seq, now := redact.NewTasks(always(r)), uint64(0), time.Now()
		var out []core.Event
		for rest := text; rest != ""; {
			n := rapid.IntRange(0, min(9, len(rest))).Draw(t, "length")
			seq++
			var e core.Event
			if rapid.IntRange(0, 5).Draw(t, "other") == 0 {
				e = core.Event{Seq: seq, Body: core.ToolState{Detail: "x"}}
			} else {
				e = core.Event{Seq: seq, Body: core.Text{Text: rest[:n]}}
				rest = rest[n:]
			}
			out = tasks.Add(out, "t", []core.Event{e}, now)
		}
		seq++
		out = tasks.Add(out, "t", []core.Event{{Seq: seq, Body: core.Done{}}}, now)
		var b strings.Builder
		for i, e := range out {
			if e.Seq != uint64(i)+1 {
				t.Fatalf("got event %d at %d, want every event in order", e.Seq, i)
			}
			if text, ok := e.Body.(core.Text); ok {
				b.WriteString(text.Text)
			}
		}
		if len(out) != int(seq) {
			t.Fatalf("got %d events, want %d", len(out), seq)
		}
		if got, want := b.String(), r.Text(text); got != want {
			t.Fatalf("%q: got  %q\nwant %q", text, got, want)
		}
	})
}

func TestTheRedactorCanBeReplaced(t *testing.T) {
	var r *redact.Redactor
	tasks, now := redact.NewTasks(func() *redact.Redactor { return r }), time.Now()
	events := pieces(false, "a "+secret, "b "+secret+" hunter2-", "correct-horse "+secret, "d "+secret)
	var out []core.Event
	for i, with := range []*redact.Redactor{nil, compile(t, nil, secret), nil, nil} {
		r = with
		out = tasks.Add(out, "t", events[i:i+1], now)
	}
	if got, want := join(texts(out)), "a "+secret+"|b [redacted] [redacted]| [redacted]|d "+secret; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestLogsAreRedacted(t *testing.T) {
	var out bytes.Buffer
	r := compile(t, nil, secret)
	log := slog.New(redact.Handler(slog.NewTextHandler(&out, nil), func() *redact.Redactor { return r }))
	log.With("a", secret).WithGroup("g").Info("it is "+secret, "b", errors.New("wrong: "+secret), "c", 7, slog.Group("d", "e", secret), "f", []byte(secret), "h", []string{secret})
	if got := out.String(); strings.Contains(got, "hunter2") || strings.Count(got, redact.Mark) != 6 || !strings.Contains(got, "g.c=7") {
		t.Errorf("got %s, want no secret", got)
	}
	r = nil
	log.Info("it is " + secret)
	if !strings.Contains(out.String(), secret) {
		t.Errorf("got %s, want the text without a redactor", out.String())
	}
}

func FuzzJSON(f *testing.F) {
	r := compile(f, []string{`a+b`}, secret)
	f.Add([]byte(`{"a":"\u0068unter2-correct-horse"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		before := bytes.Clone(raw)
		out := r.JSON(raw)
		if json.Valid(raw) && !json.Valid(out) {
			t.Errorf("got %q of %q, want valid JSON", out, raw)
		}
		if bytes.Contains(out, []byte(secret)) || !bytes.Equal(before, raw) {
			t.Errorf("got %q of %q", out, before)
		}
	})
}

func BenchmarkAPieceOfText(b *testing.B) {
	many := make([]string, 100)
	for i := range many {
		many[i] = "secret-" + strings.Repeat(string(rune('a'+i%26)), 20) + string(rune('0'+i/26))
	}
	for name, r := range map[string]*redact.Redactor{
		"own tokens":              compile(b, []string{redact.OwnTokens}),
		"100 secrets":             compile(b, nil, many...),
		"and 3 patterns":          compile(b, []string{`sk-[A-Za-z0-9]{20,}`, `ghp_[A-Za-z0-9]{36}`, `-----BEGIN [A-Z ]+-----`}, many...),
		"and one without a start": compile(b, []string{`\b\d{4}[ -]\d{4}[ -]\d{4}[ -]\d{4}\b`}, many...),
	} {
		b.Run(name, func(b *testing.B) {
			tasks, now := redact.NewTasks(always(r)), time.Now()
			e := pieces(false, "some words of an answer with 48 characters here.")
			var out []core.Event
			b.ReportAllocs()
			for b.Loop() {
				out = tasks.Add(out[:0], "t", e, now)
			}
		})
	}
}
