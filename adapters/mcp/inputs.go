package mcp

import (
	"encoding/json"
	"sync"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/schemas"
)

// inputs has the schemas of the inputs of tools, each of which is compiled once.
type inputs struct {
	mu  sync.Mutex
	all map[string]inputSchema // by its text
}

// maxSchemas is the maximum number of compiled schemas, since packs change.
const maxSchemas = 1024

// inputSchema is a compiled schema. Its zero value allows every input.
type inputSchema struct {
	validate func([]byte) error // nil if it cannot be compiled: the tool has to check
	mirrored []wire.Mirrored
}

// of returns a schema compiled.
func (s *inputs) of(text json.RawMessage) inputSchema {
	s.mu.Lock()
	defer s.mu.Unlock()
	schema, known := s.all[string(text)]
	if known {
		return schema
	}
	if len(s.all) >= maxSchemas || s.all == nil {
		s.all = make(map[string]inputSchema)
	}
	schema.validate, _ = schemas.Compile(text)
	if v, err := strictjson.Parse(text, strictjson.Limits{Bytes: len(text)}); err == nil {
		// Clients must not call a tool whose annotations are wrong: there is nothing to compare.
		if schema.mirrored, err = wire.MirroredIn(v); err != nil {
			schema.mirrored = nil
		}
	}
	s.all[string(text)] = schema
	return schema
}

// check validates an input; its error names the field.
func (s inputSchema) check(input json.RawMessage) error {
	if s.validate == nil {
		return nil
	}
	return s.validate(input)
}

// checkHeaders checks the headers that repeat an argument, which modern clients send.
func (s inputSchema) checkHeaders(q *request, input json.RawMessage) *jsonrpc.Error {
	if !q.modern || len(s.mirrored) == 0 {
		return nil
	}
	arguments, err := strictjson.Parse(input, strictjson.Limits{Bytes: len(input)})
	if err != nil {
		return badParams("arguments: %s", err)
	}
	for _, m := range s.mirrored {
		if err := m.Check(q.http.Header, arguments); err != nil {
			return &jsonrpc.Error{Code: wire.CodeHeaderMismatch, Message: err.Error()}
		}
	}
	return nil
}
