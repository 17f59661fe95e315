package mcp

import (
	"encoding/json"
	"fmt"
	"net/url"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// packResult is the output of a tool of a pack in the form in which the packs of MCP servers have it, and in which
// others may: see docs/mcp.md.
type packResult struct {
	Text    *string           `json:"text"`
	Data    json.RawMessage   `json:"data"`
	Files   []answeredFile    `json:"files"`
	Content []json.RawMessage `json:"content"`
}

// contentsOf returns the output of a tool of a pack as contents, and its structured content. It returns no
// contents for an output that does not have the form of a packResult, which is JSON of its own.
func contentsOf(tool string, output json.RawMessage) (contents []any, structured json.RawMessage) {
	whole, err := strictjson.Parse(output, strictjson.Limits{Bytes: len(output)})
	if err != nil || whole.Kind() != strictjson.Object {
		return nil, nil
	}
	for key := range whole.Members() {
		switch string(key) {
		case "text", "data", "files", "content":
		default:
			return nil, nil
		}
	}
	var p packResult
	if whole.Decode(&p) != nil {
		return nil, nil
	}
	if p.Text != nil {
		contents = append(contents, wire.NewText(*p.Text))
	} else if p.Data != nil {
		contents = append(contents, wire.NewText(string(p.Data))) // for clients that do not read the other
	}
	for i, f := range p.Files {
		contents = append(contents, wire.ContentOf(fmt.Sprintf("dragoman://tools/%s/files/%d/", url.PathEscape(tool), i), core.File(f)))
	}
	for _, block := range p.Content {
		var is struct {
			Type string `json:"type"`
		}
		if strictjson.Decode(block, strictjson.Limits{Bytes: len(block)}, &is) != nil || is.Type == "" {
			return nil, nil
		}
		contents = append(contents, block)
	}
	if v, err := strictjson.Parse(p.Data, strictjson.Limits{Bytes: len(p.Data)}); err == nil && v.Kind() == strictjson.Object {
		structured = p.Data
	}
	return contents, structured
}
