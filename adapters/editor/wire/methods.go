package wire

import (
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Dialect is the name of the dialect.
const Dialect = "editor"

// Version is the version of the protocol that the hub speaks. An agent that is asked for a
// later one answers with this one (initialization, "Version Negotiation").
const Version = 1

// The codes of errors beside those of JSON-RPC (schema, "ErrorCode").
const (
	CodeAuthRequired     = -32000
	CodeResourceNotFound = -32002
	CodeRequestCancelled = -32800
)

// checker is a value with rules beyond the types of its members.
type checker interface{ check() error }

// Read decodes params or a result. Unknown members are ignored: who passes them on keeps the
// text. The error is one of invalid params that says what to change; a value is decoded from
// absent params as from an empty object.
func Read[P any](v strictjson.Value) (P, *jsonrpc.Error) {
	var p P
	if v.Exists() && v.Kind() != strictjson.Object && v.Kind() != strictjson.Null {
		return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "want an object, got %.40s", v.Raw())
	}
	if err := v.Decode(&p); err != nil {
		return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err)
	}
	if c, ok := any(&p).(checker); ok {
		if err := c.check(); err != nil {
			return p, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "%s", err)
		}
	}
	return p, nil
}
