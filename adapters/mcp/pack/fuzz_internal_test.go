package pack

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzResult reads any result of a tool: its output is JSON, and no text of it is lost.
func FuzzResult(f *testing.F) {
	for _, seed := range []string{
		`{"content":[{"type":"text","text":"a"}]}`, `{"content":[{"type":"image","data":"aGk=","mimeType":"image/png"}],"structuredContent":[1]}`,
		`{"content":[{"type":"resource","resource":{"uri":"a:b","blob":""}}],"isError":true}`, `{}`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		v, err := strictjson.Parse(in, strictjson.Limits{})
		if err != nil {
			return
		}
		got, fault := readResult(v)
		if fault != nil {
			return
		}
		if err := strictjson.Check(got, strictjson.Limits{Depth: 80}); err != nil {
			t.Fatalf("%s became %s: %v", in, got, err)
		}
		var back output
		if err := json.Unmarshal(got, &back); err != nil {
			t.Fatalf("%s became %s: %v", in, got, err)
		}
		blocks := 0
		for b := range v.Get("content").Items() {
			if _, ok := wire.TextOf(b); !ok {
				blocks++
			}
		}
		if blocks != len(back.Files)+len(back.Content) {
			t.Fatalf("%s became %s, want all %d blocks", in, got, blocks)
		}
	})
}

// FuzzTools reads any page of a list of tools: what is offered has a unique name of the hub.
func FuzzTools(f *testing.F) {
	for _, seed := range []string{
		`{"tools":[{"name":"a","inputSchema":{"type":"object","properties":{"x":{"type":"string","x-mcp-header":"X"}}}}],"nextCursor":"n"}`,
		`{"tools":[{"name":"a"},{"name":"a"},{"name":""},null]}`, `{"tools":7}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		page, err := strictjson.Parse(in, strictjson.Limits{})
		if err != nil {
			return
		}
		c := &catalog{pack: "p", mirror: true}
		if _, err := c.add(page); err != nil {
			return
		}
		if n := page.Get("tools").Len(); len(c.tools)+len(c.refused) != n {
			t.Fatalf("%s: got %d tools and %d refused, want %d in all", in, len(c.tools), len(c.refused), n)
		}
		seen := map[string]bool{}
		for _, l := range c.tools {
			if seen[l.Name] || len(l.Name) > maxToolName || strings.ContainsFunc(l.Name, wire.NotOfNames) {
				t.Fatalf("%s: got the name %q", in, l.Name)
			}
			seen[l.Name] = true
		}
	})
}
