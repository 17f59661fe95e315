package mcp_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// packThat connects a pack whose only tool, find, returns the same result each time.
func (g *testServer) packThat(returns tool.Result) {
	g.t.Helper()
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: "maps"}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	if err := s.Provide("maps", []tool.Definition{{Name: "find"}}); err != nil {
		g.t.Fatal(err)
	}
	go func() {
		for {
			b, err := s.Next(g.t.Context())
			if err != nil {
				return
			}
			if b.Execute != nil {
				_ = s.AnswerTool(b.Execute.ID, returns) // the call may be gone
			}
		}
	}()
}

// find calls the tool in a version of the protocol, "" for a client that names none, and returns the result.
func (g *testServer) find(version string) string {
	g.t.Helper()
	if version == wire.Modern {
		return string(g.ask(modern("tools/call", canNothing, `"name":"find"`)).rpc(200).Result)
	}
	var headers []string
	if version != "" {
		headers = append(headers, "Mcp-Protocol-Version: "+version)
	}
	return string(g.post("", toolCall("1", "find", `{}`), headers...).rpc(200).Result)
}

const (
	anyVersion = ""
	ownMeta    = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"dragoman","version":"1.2.3"}}`
)

func TestTheResultOfAnMCPServerArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	blocks := `"content":[{"type":"text","text":"a","annotations":{"audience":["user"],"priority":0.50},"_meta":{"n":1}},` +
		`{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{}},{"type":"audio","data":"aGk=","mimeType":"audio/wav"},` +
		`{"type":"resource","resource":{"uri":"x:y","mimeType":"text/plain","text":"hi","_meta":{}}},{"type":"text","text":"b"},{"type":"new","z":1}]`
	link := `{"type":"resource_link","uri":"x:z","name":"z"}`
	asText := `{"type":"text","text":"{\"type\":\"resource_link\",\"uri\":\"x:z\",\"name\":\"z\"}"}`
	audio := `{"type":"audio","data":"aGk=","mimeType":"audio/wav"}`
	audioText := `{"type":"text","text":"{\"type\":\"audio\",\"data\":\"aGk=\",\"mimeType\":\"audio/wav\"}"}`
	for name, c := range map[string]struct {
		version, sent, want string
	}{
		"every kind of block":              {anyVersion, `{` + blocks + `}`, `{` + blocks + `}`},
		"every kind of block, modern":      {wire.Modern, `{"resultType":"complete",` + blocks + `}`, `{"resultType":"complete",` + blocks + `,` + ownMeta + `}`},
		"of a legacy server":               {wire.Modern, `{` + blocks + `}`, `{` + blocks + `,"resultType":"complete",` + ownMeta + `}`},
		"to a legacy client":               {anyVersion, `{"resultType":"complete","content":[]}`, `{"content":[]}`},
		"structured content":               {wire.LatestLegacy, `{"content":[],"structuredContent":{"n":1.0}}`, `{"content":[],"structuredContent":{"n":1.0}}`},
		"the same, to an old client":       {"2025-03-26", `{"content":[],"structuredContent":{"n":1.0}}`, `{"content":[{"type":"text","text":"{\"n\":1.0}"}],"structuredContent":{"n":1.0}}`},
		"the same, to one without a name":  {anyVersion, `{"content":[],"structuredContent":{"n":1}}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`},
		"the same beside text, to it":      {anyVersion, `{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`, `{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1}}`},
		"structured content, no object":    {wire.Modern, `{"content":[],"structuredContent":[1],"resultType":"complete"}`, `{"content":[],"structuredContent":[1],"resultType":"complete",` + ownMeta + `}`},
		"the same, to a legacy client":     {anyVersion, `{"content":[],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"[1]"}]}`},
		"the same beside a text":           {anyVersion, `{"content":[{"type":"text","text":"one"}],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"one"}]}`},
		"a link":                           {"2025-06-18", `{"content":[` + link + `]}`, `{"content":[` + link + `]}`},
		"a link, to a client without them": {"2025-03-26", `{"content":[` + link + `]}`, `{"content":[` + asText + `]}`},
		"audio":                            {"2025-03-26", `{"content":[` + audio + `]}`, `{"content":[` + audio + `]}`},
		"audio, to a client without it":    {"2024-11-05", `{"content":[` + audio + `]}`, `{"content":[` + audioText + `]}`},
		"no content":                       {wire.LatestLegacy, `{"structuredContent":{}}`, `{"structuredContent":{},"content":[]}`},
		"_meta":                            {anyVersion, `{"content":[],"_meta":{"a":1}}`, `{"content":[],"_meta":{"a":1}}`},
		"_meta that names the server":      {anyVersion, `{"content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"x"}}}`, `{"content":[],"_meta":{"a":1}}`},
		"the same, modern": {
			wire.Modern, `{"resultType":"complete","content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"x"}}}`,
			`{"resultType":"complete","content":[],"_meta":{"a":1,"io.modelcontextprotocol/serverInfo":{"name":"dragoman","version":"1.2.3"}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := start(t, mcp.Options{})
			g.packThat(tool.Result{Output: json.RawMessage(`{}`), Foreign: &core.Foreign{Dialect: "mcp", JSON: json.RawMessage(c.sent)}})
			if got := g.find(c.version); got != c.want {
				t.Errorf("got %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestAResultOfAnMCPServerThatFailedIsCountedAndKept(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	sent := `{"content":[{"type":"text","text":"no"},{"type":"image","data":"aGk=","mimeType":"image/png"}],"isError":true}`
	g.packThat(tool.Result{Fault: core.NewFault(core.CodeInternal, "no"), Foreign: &core.Foreign{Dialect: "mcp", JSON: json.RawMessage(sent)}})
	if got := g.find(anyVersion); got != sent {
		t.Errorf("got %s, want %s", got, sent)
	}
	if got := g.hub.Counters()["mcp.failed.internal"]; got != 1 {
		t.Errorf("got %d failures counted, want 1", got)
	}
}

func TestTheResultOfAnyOtherPackIsItsJSON(t *testing.T) {
	t.Parallel()
	for sent, want := range map[string]string{
		`{"text":"a","files":[]}`: `{"text":"a","files":[]}`,
		`"said \"so\""`:           `said "so"`,
		`""`:                      ``,
		`["a"]`:                   `["a"]`,
		`null`:                    `null`,
	} {
		g := start(t, mcp.Options{})
		g.packThat(tool.Result{Output: json.RawMessage(sent), Foreign: &core.Foreign{Dialect: "test", JSON: json.RawMessage(`{"content":[]}`)}})
		text, _ := json.Marshal(want)
		if got := g.find(anyVersion); got != `{"content":[{"type":"text","text":`+string(text)+`}]}` {
			t.Errorf("%s: got %s, want the text %q", sent, got, want)
		}
	}
}
