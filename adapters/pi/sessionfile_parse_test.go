package pi_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
)

// written is a file as the real program writes it.
const written = `{"type":"session","version":3,"id":"85e0dab2-0000-4000-8000-000000000001","timestamp":"2026-11-20T21:29:07.464Z","cwd":"/home/u/proj"}
{"type":"model_change","id":"11111111","parentId":null,"timestamp":"2026-11-20T21:29:07.470Z","provider":"fake","modelId":"fake-1"}
{"type":"thinking_level_change","id":"22222222","parentId":"11111111","timestamp":"2026-11-20T21:29:07.471Z","thinkingLevel":"off"}
{"type":"message","id":"33333333","parentId":"22222222","timestamp":"2026-11-20T21:29:08.000Z","message":{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1795210148000}}
{"type":"newer","id":"44444444","parentId":"33333333","timestamp":"2026-11-20T21:29:09.000Z","what":{"ever":[1]}}
{"type":"message","id":"55555555","parentId":"44444444","timestamp":"2026-11-20T21:29:09.000Z","message":{"role":"assistant","content":[]},"later":true}
{"type":"message","id":"66666666","parentId":"55555555","timest`

// shown is all that entries say.
func shown(entries []sessionfile.Entry) (all [][]string) {
	for _, e := range entries {
		all = append(all, []string{e.Type, e.ID(), e.ParentID(), e.Timestamp(), string(e.Message()), string(e.Line)})
	}
	return all
}

func TestAFileOfTheRealProgramIsRead(t *testing.T) {
	f, err := sessionfile.Parse([]byte(written))
	if err != nil {
		t.Fatal(err)
	}
	head := sessionfile.Header{Version: 3, ID: "85e0dab2-0000-4000-8000-000000000001", Timestamp: "2026-11-20T21:29:07.464Z", Cwd: "/home/u/proj"}
	if d := cmp.Diff(head, f.Header); d != "" {
		t.Errorf("the header (-want +got):\n%s", d)
	}
	var got []string
	lines := strings.Split(written, "\n")
	for i, e := range f.Entries {
		got = append(got, e.Type+" "+e.ID()+" < "+e.ParentID())
		if string(e.Line) != lines[i+1] {
			t.Errorf("entry %d: got the line %s, want it as it stands: %s", i, e.Line, lines[i+1])
		}
	}
	want := []string{
		"model_change 11111111 < ", "thinking_level_change 22222222 < 11111111", "message 33333333 < 22222222",
		"newer 44444444 < 33333333", "message 55555555 < 44444444",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("the entries (-want +got):\n%s", d)
	}
	if f.Skipped != 1 {
		t.Errorf("got %d lines skipped, want the torn one", f.Skipped)
	}
	if got := string(f.Entries[4].Message()); got != `{"role":"assistant","content":[]}` {
		t.Errorf("got the message %s", got)
	}
	var model sessionfile.ModelChange
	if err := f.Entries[0].Body(&model); err != nil || model.ModelID != "fake-1" || model.Provider != "fake" {
		t.Errorf("got %+v and %v", model, err)
	}
}

func TestWhatHasNoHeaderIsNoSession(t *testing.T) {
	for _, text := range []string{
		"", "\n", "[]", "{}", `{"type":"session","version":3}`, `{"type":"session","cwd":"/"}`, `{"type":"session","version":"3","cwd":"/"}`,
		`{"type":"session","version":3,"cwd":null}`, `{"type":"message","version":3,"cwd":"/"}`, `{"type":"session","version":3,"cwd":"/"`, "root:x:0:0\n",
	} {
		if _, err := sessionfile.Parse([]byte(text)); !errors.Is(err, sessionfile.ErrNoSession) {
			t.Errorf("%q: got %v, want it refused", text, err)
		}
		if _, err := sessionfile.ParseHeader([]byte(text)); !errors.Is(err, sessionfile.ErrNoSession) {
			t.Errorf("the header of %q: got %v, want it refused", text, err)
		}
	}
}

func TestWhatOlderVersionsLeaveOutIsFilledIn(t *testing.T) {
	old := `{"type":"session","version":1,"id":"a","timestamp":"2025-01-01T00:00:00.000Z","cwd":"/p"}
{"type":"message","timestamp":"2025-01-01T00:00:01.000Z","message":{"role":"user","content":"one"}}
{"type":"message","timestamp":"2025-01-01T00:00:02.000Z","message":{"role":"hookMessage","customType":"x","content":"two"}}
{"type":"compaction","timestamp":"2025-01-01T00:00:03.000Z","summary":"s","firstKeptEntryIndex":2,"tokensBefore":7}
{"type":"message","id":"aaaaaaaa","parentId":"00000003","timestamp":"2026-01-01T00:00:00.000Z","message":{"role":"user","content":"new"}}
`
	f, err := sessionfile.Parse([]byte(old))
	if err != nil || len(f.Entries) != 4 || f.Skipped != 0 {
		t.Fatalf("got %d entries, %d skipped and %v, want 4", len(f.Entries), f.Skipped, err)
	}
	parents := []string{"", "00000001", "00000002", "00000003"}
	for i, e := range f.Entries {
		if e.ParentID() != parents[i] {
			t.Errorf("entry %d: got the parent %q, want %q", i, e.ParentID(), parents[i])
		}
	}
	if got, want := string(f.Entries[1].Message()), `{"content":"two","customType":"x","role":"custom"}`; got != want {
		t.Errorf("a message of a hook: got %s, want %s", got, want)
	}
	var c sessionfile.Compaction
	if err := f.Entries[2].Body(&c); err != nil || c.FirstKeptEntryID != "00000002" || c.TokensBefore != 7 {
		t.Errorf("the compaction: got %+v and %v, want it to keep from entry 00000002", c, err)
	}
}

func TestTheTextsOfAnEntryAreReadWhereverTheyStand(t *testing.T) {
	for line, want := range map[string][]string{
		`{"message":{"id":"x"},"id":"x","type":"message","timestamp":"x"}`:                       {"message", "x", "", "x", `{"id":"x"}`},
		`{"type":"id","id":"type","parentId":"id","timestamp":""}`:                               {"id", "type", "id", "", ""},
		`{"type":"m\u00e4","id":"\"","parentId":"\\","timestamp":"é","message":{"role":"user"}}`: {"mä", `"`, `\`, "é", ""},
		`{"type" : "\u006dessage", "id" : "1", "parentId" : null, "message" : [ 1 ]}`:            {"message", "1", "", "", "[ 1 ]"},
		`{"type":"message","id":"1","messAge":{"role":"user"}}`:                                  {"message", "1", "", "", ""},
		`{"type":"message","id":"1","timestamp":null,"message":null}`:                            {"message", "1", "", "", "null"},
	} {
		f, err := sessionfile.Parse(append(sessionfile.Header{}.Line(), "\n"+line...))
		if err != nil || len(f.Entries) != 1 {
			t.Errorf("%s: got %d entries and %v, want one", line, len(f.Entries), err)
			continue
		}
		if d := cmp.Diff([][]string{append(want, line)}, shown(f.Entries)); d != "" {
			t.Errorf("%s (-want +got):\n%s", line, d)
		}
	}
	for _, line := range []string{`{"type":1,"id":"1"}`, `{"type":"x","id":1}`, `{"type":"x","id":"1","parentId":[]}`, `{"type":"x","id":"1","timestamp":{}}`, `{"type":null,"id":"1"}`} {
		if f, err := sessionfile.Parse(append(sessionfile.Header{}.Line(), "\n"+line...)); err != nil || f.Skipped != 1 {
			t.Errorf("%s: got %d entries and %v, want it passed over", line, len(f.Entries), err)
		}
	}
}

func TestALineThatIsNoEntryIsPassedOver(t *testing.T) {
	text := `{"type":"session","version":3,"id":"a","timestamp":"t","cwd":"/p"}
{"type":"label","id":"1","parentId":null,"timestamp":"t","targetId":"1"}
{"type":"label","id":"1","parentId":null,"timestamp":"t","targetId":"twice"}
{"type":"label","type":"label","id":"2"}
[1]
{"id":"3"}
` + "\x00\xff\r\n" + `{"type":"label","id":"4","parentId":"1","timestamp":"t","targetId":"1"}` + "\r\n"
	f, err := sessionfile.Parse([]byte(text))
	if err != nil || len(f.Entries) != 2 || f.Skipped != 5 || f.Entries[1].ID() != "4" {
		t.Errorf("got %d entries and %d skipped, want 2 and 5", len(f.Entries), f.Skipped)
	}
}

func TestWhatIsWrittenIsReadTheSame(t *testing.T) {
	few := rapid.StringMatching(`[ -~\n"\\<>&é]{0,20}`)
	text := rapid.Map(few, func(s string) string { return strings.Repeat(s, 1+len(s)%3*30) }) // some for a page of their own
	raw := rapid.Custom(func(t *rapid.T) json.RawMessage {
		b, err := json.Marshal(map[string]string{"role": "user", "content": text.Draw(t, "content")})
		if err != nil {
			t.Fatal(err)
		}
		return b
	})
	body := rapid.OneOf(
		rapid.Just[sessionfile.Body](nil), // a message
		rapid.Map(text, func(s string) sessionfile.Body { return sessionfile.ModelChange{Provider: s, ModelID: s} }),
		rapid.Map(text, func(s string) sessionfile.Body { return sessionfile.ThinkingLevelChange{ThinkingLevel: s} }),
		rapid.Map(text, func(s string) sessionfile.Body {
			return sessionfile.Compaction{Summary: s, FirstKeptEntryID: s, TokensBefore: 3}
		}),
		rapid.Map(text, func(s string) sessionfile.Body { return sessionfile.BranchSummary{FromID: s, Summary: s} }),
		rapid.Map(raw, func(m json.RawMessage) sessionfile.Body { return sessionfile.Custom{CustomType: "x", Data: m} }),
		rapid.Map(raw, func(m json.RawMessage) sessionfile.Body {
			return sessionfile.CustomMessage{CustomType: "x", Content: m, Display: true, Details: m}
		}),
		rapid.Map(text, func(s string) sessionfile.Body { return sessionfile.Label{TargetID: s, Label: s} }),
		rapid.Map(text, func(s string) sessionfile.Body { return sessionfile.Info{Name: s} }),
	)
	rapid.Check(t, func(t *rapid.T) {
		head := sessionfile.Header{Version: 3, ID: "id", Timestamp: "2026-01-01T00:00:00.000Z", Cwd: text.Draw(t, "cwd"), SessionID: "s"}
		file := append(head.Line(), '\n')
		var page sessionfile.Page
		var want []sessionfile.Entry
		for i, b := range rapid.SliceOfN(body, 0, 10).Draw(t, "bodies") {
			var parent *sessionfile.Entry
			if i > 0 {
				parent = &want[rapid.IntRange(0, i-1).Draw(t, "parent")]
			}
			id, at := text.Draw(t, "id")+fmt.Sprintf("%08x", 100+i), time.UnixMilli(rapid.Int64Range(0, 1e14).Draw(t, "at"))
			if b != nil {
				want = append(want, sessionfile.New(&page, id, parent, at, b))
			} else {
				m := raw.Draw(t, "message")
				want = append(want, sessionfile.NewMessage(&page, id, parent, at, m))
				if got := want[i].Message(); !bytes.Equal(got, m) {
					t.Fatalf("got the message %s, want %s", got, m)
				}
			}
			follows := ""
			if parent != nil {
				follows = parent.ID()
			}
			made := []string{id, follows, at.UTC().Format(sessionfile.Time)}
			if d := cmp.Diff(made, shown(want[i:])[0][1:4]); d != "" {
				t.Fatalf("what it was made of (-want +got):\n%s", d)
			}
		}
		for _, e := range want { // once all of the page is written
			file = append(append(file, e.Line...), '\n')
		}
		f, err := sessionfile.Parse(file)
		if err != nil || f.Skipped != 0 {
			t.Fatalf("got %v and %d skipped of\n%s", err, f.Skipped, file)
		}
		if d := cmp.Diff(head, f.Header); d != "" {
			t.Fatalf("the header (-want +got):\n%s", d)
		}
		if d := cmp.Diff(shown(want), shown(f.Entries)); d != "" {
			t.Fatalf("the entries (-want +got):\n%s", d)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(written))
	f.Add([]byte("{\"type\":\"session\",\"version\":1,\"cwd\":\"\"}\n{\"type\":\"compaction\",\"firstKeptEntryIndex\":1}\n{\"type\":\"message\",\"message\":{\"role\":\"hookMessage\"}}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := sessionfile.Parse(data)
		if err != nil {
			return
		}
		again := append(file.Header.Line(), '\n')
		for _, e := range file.Entries {
			if bytes.ContainsRune(e.Line, '\n') || !json.Valid(e.Line) || e.ID() == "" {
				t.Fatalf("got the entry %+v with the line %q, want a line of JSON", e, e.Line)
			}
			e.Message()
			again = append(append(again, e.Line...), '\n')
		}
		twice, err := sessionfile.Parse(again)
		if err != nil || twice.Skipped != 0 {
			t.Fatalf("what was read cannot be read again: %v, %d skipped", err, twice.Skipped)
		}
		if d := cmp.Diff(shown(file.Entries), shown(twice.Entries)); d != "" {
			t.Fatalf("read again (-first +second):\n%s", d)
		}
	})
}
