package jsonrpc

import (
	"encoding/json"
	"strconv"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

const head = `{"jsonrpc":"2.0",`

// NumberID returns a number as an id.
func NumberID(n uint64) json.RawMessage { return strconv.AppendUint(nil, n, 10) }

// AppendRequest appends a request to to. Params is an object or an array, or nil for none.
// Whatever line breaks it has between its values stay: transports of lines replace them.
func AppendRequest(to []byte, id json.RawMessage, method string, params json.RawMessage) []byte {
	to = append(append(append(to, head+`"id":`...), id...), ',')
	return appendCall(to, method, params)
}

// AppendNotification appends a notification to to, by the rules of [AppendRequest].
func AppendNotification(to []byte, method string, params json.RawMessage) []byte {
	return appendCall(append(to, head...), method, params)
}

func appendCall(to []byte, method string, params json.RawMessage) []byte {
	to = strictjson.AppendString(append(to, `"method":`...), method)
	if len(params) > 0 {
		to = append(append(to, `,"params":`...), params...)
	}
	return append(to, '}')
}

// AppendResult appends the response to a request that succeeded. A nil result is null.
func AppendResult(to []byte, id, result json.RawMessage) []byte {
	to = append(appendID(to, id), `,"result":`...)
	if len(result) == 0 {
		return append(to, "null}"...)
	}
	return append(append(to, result...), '}')
}

// AppendError appends the response to a request that failed. The id is nil if the request
// could not be read, which is null.
func AppendError(to []byte, id json.RawMessage, e *Error) []byte {
	return append(e.append(append(appendID(to, id), `,"error":`...)), '}')
}

func appendID(to []byte, id json.RawMessage) []byte {
	to = append(to, head+`"id":`...)
	if len(id) == 0 {
		return append(to, "null"...)
	}
	return append(to, id...)
}
