package editor_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func update(t testing.TB, text string) wire.Update {
	t.Helper()
	u, err := wire.ReadUpdate(parse(t, `{"sessionId":"s","update":`+text+`}`))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return u
}

func TestAChunkOfTextIsReadWithWhatElseItSays(t *testing.T) {
	for _, c := range []struct {
		in, kind, text string
		plain          bool
		message, rest  string
	}{
		{`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"a\nb"}}`, wire.UpdateAgentMessageChunk, "a\nb", true, "", ""},
		{`{"content":{"text":"","type":"text"},"sessionUpdate":"agent_thought_chunk","messageId":"m"}`, wire.UpdateAgentThoughtChunk, "", true, `"m"`, `{"messageId":"m"}`},
		{`{"sessionUpdate":"agent_message_chunk","messageId":null,"content":{"type":"text","text":"x"}}`, wire.UpdateAgentMessageChunk, "x", true, "", `{"messageId":null}`},
		{
			`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","annotations":{"priority":1}},"_meta":{"k":1}}`, wire.UpdateAgentMessageChunk, "x", false, "",
			`{"content":{"annotations":{"priority":1}},"_meta":{"k":1}}`,
		},
	} {
		u := update(t, c.in)
		got, ok := u.Text()
		if !ok || string(got) != c.text || u.Kind != c.kind || u.Plain() != c.plain || string(u.MessageID()) != c.message || string(u.SessionID) != "s" {
			t.Errorf("%s: got %q %v of %s in %s, plain %v, message %s", c.in, got, ok, u.Kind, u.SessionID, u.Plain(), u.MessageID())
		}
		rest := ""
		if f := u.Rest(); f != nil {
			rest = string(f.JSON)
		}
		if rest != c.rest {
			t.Errorf("%s: got the rest %s, want %s", c.in, rest, c.rest)
		}
	}
}

func TestAChunkOfOtherContentHasABlockAndNoText(t *testing.T) {
	u := update(t, `{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"aGk=","mimeType":"image/png","uri":"file:///a.png"}}`)
	if text, ok := u.Text(); ok {
		t.Errorf("got the text %q of an image", text)
	}
	b, err := u.Block()
	if err != nil || string(b.Data) != "hi" || b.MimeType != "image/png" {
		t.Errorf("got %+v, %v", b, err)
	}
	if got := string(u.Rest().JSON); got != `{"content":{"mimeType":"image/png","uri":"file:///a.png"}}` {
		t.Errorf("got the rest %s, want it without the data", got)
	}
}

func TestAnUpdateThatIsNoneIsRefusedWithItsReason(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{`{}`, "sessionId: missing; send the id of a session"},
		{`{"sessionId":"s"}`, "update: want an object with the member sessionUpdate"},
		{`{"sessionId":"s","update":{}}`, "update.sessionUpdate: want the kind of the update as a string"},
		{`{"sessionId":"s","update":{"sessionUpdate":1}}`, "update.sessionUpdate: want the kind of the update as a string"},
	} {
		if _, err := wire.ReadUpdate(parse(t, c.in)); err == nil || err.Error() != c.want {
			t.Errorf("%s: got %v, want %s", c.in, err, c.want)
		}
	}
}

// A chunk is read in one pass and its text decoded once; nothing is allocated but the index of
// the message and the text.
func TestAChunkIsReadOnce(t *testing.T) {
	line := wire.AppendChunk(nil, "s", wire.UpdateAgentMessageChunk, strings.Repeat("x", 1000), nil)
	read := func() {
		m, fault := jsonrpc.Read(line, strictjson.Limits{})
		if fault != nil {
			t.Fatal(fault)
		}
		u, err := wire.ReadUpdate(m.Params)
		if err != nil {
			t.Fatal(err)
		}
		if text, ok := u.Text(); !ok || len(text) != 1000 || !u.Plain() {
			t.Fatalf("got %q", text)
		}
	}
	if got, most := strictjson.Visits(read), int64(len(line)+1000+100); got > most {
		t.Errorf("read %d bytes of a line of %d, want at most %d", got, len(line), most)
	}
	if got := testing.AllocsPerRun(100, read); got > 5 {
		t.Errorf("got %v allocations for a chunk, want at most 5", got)
	}
}

func TestWhatAnAgentSaidIsRestoredForAnEditor(t *testing.T) {
	for _, in := range []string{
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"messageId":"m"}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x","annotations":{"priority":1}},"_meta":{"k":1}}`,
		`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}`,
	} {
		u := update(t, in)
		text, _ := u.Text()
		whole, more, told := wire.OfForeign(u.Rest())
		if whole != nil || told {
			t.Errorf("%s: got %s, told %v, want only members to add", in, whole, told)
		}
		want := `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"other","update":` + in + `}}`
		if got := string(wire.AppendChunk(nil, "other", u.Kind, string(text), more)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
	plan := update(t, `{"sessionUpdate":"plan","entries":[]}`)
	if whole, more, told := wire.OfForeign(wire.Verbatim(plan.Whole)); string(whole) != `{"sessionUpdate":"plan","entries":[]}` || more != nil || told {
		t.Errorf("got %s, %s, %v, want the whole plan", whole, more, told)
	}
	if whole, more, told := wire.OfForeign(wire.Told()); whole != nil || more != nil || !told {
		t.Errorf("got %s, %s, %v, want told", whole, more, told)
	}
	for _, f := range []*core.Foreign{nil, {Dialect: "acp", JSON: []byte(`{}`)}, {Dialect: wire.Dialect, JSON: []byte(`[`)}} {
		if whole, more, told := wire.OfForeign(f); whole != nil || more != nil || told {
			t.Errorf("%+v: got %s, %s, %v, want nothing", f, whole, more, told)
		}
	}
	if got := string(wire.Rest(parse(t, `{"stopReason":"end_turn","_meta":{"q":1}}`), "stopReason").JSON); got != `{"_meta":{"q":1}}` {
		t.Errorf("got %s", got)
	}
}
