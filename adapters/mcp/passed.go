package mcp

import (
	"cmp"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The first versions with these contents.
const (
	withAudio      = "2025-03-26"
	withLinks      = "2025-06-18" // resource_link
	withStructured = "2025-06-18" // structuredContent
)

// unnamed is the version of a client that does not name it (2025-06-18, basic/transports, "Protocol Version Header").
const unnamed = "2025-03-26"

// answerWith returns an outcome as the client gets it: that of a tool of an MCP server as the
// server sent it, any other by resultOf.
func (s *Server) answerWith(q *request, o *outcome) any {
	if o.original == nil {
		return s.resultOf(q, o)
	}
	if o.fault != nil {
		s.hub.Count(Name + ".failed." + string(o.fault.Code))
	}
	return s.passedOn(q, strictjson.ParseValid(o.original))
}

// passedOn returns the result of a server for a client of the request's version. All that the version
// has stays as it is; what the server says of itself is replaced by what this one says.
func (s *Server) passedOn(q *request, result strictjson.Value) json.RawMessage {
	content, lossy := contentFor(q, result)
	fields := []strictjson.Field{}
	if lossy || result.Get("content").Kind() != strictjson.Array { // which is required
		fields = append(fields, strictjson.Field{Key: "content", Value: strictjson.Encode(content)})
	}
	var without []string
	if meta := result.Get("_meta"); q.modern {
		fields = append(fields, strictjson.Field{Key: "resultType", Value: strictjson.Encode(wire.ResultComplete)})
		if meta.Kind() != strictjson.Object {
			meta = strictjson.ParseValid([]byte("{}"))
		}
		info := strictjson.Field{Key: wire.MetaServer, Value: strictjson.Encode(s.info())}
		fields = append(fields, strictjson.Field{Key: "_meta", Value: meta.Set(info)})
	} else {
		without = append(without, "resultType")
		if meta.Get(wire.MetaServer).Exists() {
			rest, _ := meta.Without(wire.MetaServer)
			fields = append(fields, strictjson.Field{Key: "_meta", Value: rest})
		}
		if data := result.Get("structuredContent"); data.Exists() && data.Kind() != strictjson.Object {
			without = append(without, "structuredContent")
		}
	}
	text := result.Set(fields...)
	if len(without) > 0 {
		text, _ = strictjson.ParseValid(text).Without(without...)
	}
	return text
}

// contentFor returns the blocks of a result for a client of the request's version, and whether that
// lacks some of them: such a block is a text with its JSON. So is structured content in a result without
// blocks, if the version has none, or none that is no object.
func contentFor(q *request, result strictjson.Value) (content []any, lossy bool) {
	content = []any{}
	version := cmp.Or(q.version, unnamed)
	for block := range result.Get("content").Items() {
		if kind, _ := block.Get("type").Text(); kind == "resource_link" && version < withLinks || kind == "audio" && version < withAudio {
			content, lossy = append(content, wire.NewText(string(block.Raw()))), true
			continue
		}
		content = append(content, block.Raw())
	}
	data := result.Get("structuredContent")
	if unknown := version < withStructured || data.Kind() != strictjson.Object && !q.modern; len(content) == 0 && data.Exists() && unknown {
		content, lossy = append(content, wire.NewText(string(data.Raw()))), true
	}
	return content, lossy
}
