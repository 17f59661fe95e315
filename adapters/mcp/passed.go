package mcp

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// resourceLinks is the first version whose contents may be a resource_link.
const resourceLinks = "2025-06-18"

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
// lacks some of them: such a block is a text with its JSON. So is structured content that is no
// object, which only modern versions have, in a result without blocks.
func contentFor(q *request, result strictjson.Value) (content []any, lossy bool) {
	content = []any{}
	for block := range result.Get("content").Items() {
		if kind, _ := block.Get("type").Text(); kind == "resource_link" && q.version < resourceLinks {
			content, lossy = append(content, wire.NewText(string(block.Raw()))), true
			continue
		}
		content = append(content, block.Raw())
	}
	if data := result.Get("structuredContent"); len(content) == 0 && data.Exists() && data.Kind() != strictjson.Object && !q.modern {
		content, lossy = append(content, wire.NewText(string(data.Raw()))), true
	}
	return content, lossy
}
