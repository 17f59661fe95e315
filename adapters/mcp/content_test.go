package mcp_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
)

// content is a content of a result, with the members of every type.
type content struct {
	Type, Text, MIMEType string
	Data                 []byte
	Resource             *struct {
		URI, MIMEType string
		Text          *string
		Blob          []byte
	}
}

// contents reads the contents of a result, and its structured content.
func (a answer) contents() ([]content, json.RawMessage) {
	a.t.Helper()
	var r struct {
		Content           []content
		StructuredContent json.RawMessage
	}
	if err := json.Unmarshal(a.rpc(http.StatusOK).Result, &r); err != nil {
		a.t.Fatal(err)
	}
	return r.Content, r.StructuredContent
}

func TestFilesOfAnAnswerAreContents(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	files := []core.Body{
		core.File{Name: "a.png", MediaType: "image/png", Data: []byte("PNG")},
		core.File{Name: "b.wav", MediaType: "audio/wav", Data: []byte("RIFF")},
		core.File{Name: "c d?.md", MediaType: "text/markdown; charset=utf-8", Data: []byte("# <c>")},
		core.File{Name: "e.json", MediaType: "application/json", Data: []byte("{}")},
		core.File{Name: "f.txt", MediaType: "text/plain", Data: []byte("\xff")},
		core.File{Name: "", MediaType: "not a type", Data: nil},
	}
	for _, how := range []string{"agent_ask", "agent_result"} {
		done := g.later(t.Context(), "", toolCall("1", "agent_ask", askBob))
		task := bob.next(core.KindAssigned)
		bob.report(task, core.Text{Text: "see"})
		bob.report(task, files...)
		bob.report(task, core.Done{Data: json.RawMessage(`{"n":1}`)})
		a := <-done
		if how == "agent_result" {
			a = g.post("", toolCall("1", "agent_result", `{"task_id":"`+string(task.ID())+`"}`))
		}
		got, structured := a.contents()
		if len(got) != 1+len(files) {
			t.Fatalf("%s: got %+v, want the text and six files", how, got)
		}
		if got[0].Text != string(structured) {
			t.Errorf("%s: got the structured content %s, want the text %s", how, structured, got[0].Text)
		}
		var text struct {
			Text  string
			Data  json.RawMessage
			Files []map[string]string
		}
		if err := json.Unmarshal([]byte(got[0].Text), &text); err != nil || text.Text != "see" || string(text.Data) != `{"n":1}` || text.Files[0]["name"] != "a.png" || text.Files[0]["data"] != "" {
			t.Errorf("%s: got the text %s, want the words, the data, and the names of the files alone", how, got[0].Text)
		}
		uri := "dragoman://tasks/" + string(task.ID()) + "/files/"
		markdown, empty := "# <c>", "{}"
		want := []content{{Type: "image", MIMEType: "image/png", Data: []byte("PNG")}, {Type: "audio", MIMEType: "audio/wav", Data: []byte("RIFF")}, {Type: "resource"}, {Type: "resource"}, {Type: "resource"}, {Type: "resource"}}
		for i, r := range []struct {
			name, media string
			text        *string
			blob        []byte
		}{{"2/c%20d%3F.md", "text/markdown; charset=utf-8", &markdown, nil}, {"3/e.json", "application/json", &empty, nil}, {"4/f.txt", "text/plain", nil, []byte("\xff")}, {"5/file", "not a type", nil, []byte{}}} {
			want[2+i].Resource = &struct {
				URI, MIMEType string
				Text          *string
				Blob          []byte
			}{uri + r.name, r.media, r.text, r.blob}
		}
		if d := cmp.Diff(want, got[1:]); d != "" {
			t.Errorf("%s: the files (-want +got):\n%s", how, d)
		}
	}
}

func TestAnAnswerWithoutDataHasNoStructuredContent(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	done := g.later(t.Context(), "", toolCall("1", "agent_ask", askBob))
	bob.report(bob.next(core.KindAssigned), core.Done{Text: "42"})
	if _, structured := (<-done).contents(); structured != nil {
		t.Errorf("got %s, want none", structured)
	}
}

func TestAnAnswerOfTenMegabytesArrivesWhole(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	data := bytes.Repeat([]byte("0123456789"), 1<<20)
	want := []byte(`"blob":"` + base64.StdEncoding.EncodeToString(data) + `"`)
	for _, accept := range []string{"Accept: application/json", streams} {
		done := g.later(t.Context(), "", withToken("7"), accept)
		bob.report(bob.next(core.KindAssigned), core.File{Name: "a.bin", MediaType: "application/octet-stream", Data: data}, core.Done{Text: "42"})
		if a := <-done; !bytes.Contains(a.body, want) {
			t.Errorf("%s: got %d bytes, want the whole file among them", accept, len(a.body))
		}
	}
}

func TestAnAgentThatLeavesFailsTheCallWithWhatItHadSaid(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	bob := g.agent("bob")
	done := g.later(t.Context(), "", toolCall("1", "agent_ask", askBob))
	bob.report(bob.next(core.KindAssigned), core.Text{Text: "half"})
	bob.Close(core.NewFault(core.CodeUnreachable, "it was killed"))
	o := (<-done).outcome()
	o.contains(t, true, "unreachable: agent bob left: it was killed")
	o.contains(t, true, `"text":"half"`)
}
