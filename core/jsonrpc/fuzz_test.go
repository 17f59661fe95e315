package jsonrpc_test

import (
	"bytes"
	"testing"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzRead checks that whatever is accepted is a message of one kind, and stays the same
// message when it is written and read again.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}`, `{"jsonrpc":"2.0","method":"m"}`, `{"jsonrpc":"2.0","id":"a","result":null}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"no","data":1}}`, `[]`, `{}`, `{"jsonrpc":"2.0","id":{}}`, "garbage",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, fault := jsonrpc.Read(text, strictjson.Limits{})
		if fault != nil {
			if fault.Code != jsonrpc.CodeParseError && fault.Code != jsonrpc.CodeInvalidRequest {
				t.Fatalf("got the code %d for %s", fault.Code, text)
			}
			answer := jsonrpc.AppendError(nil, m.ID, fault)
			if back, again := jsonrpc.Read(answer, strictjson.Limits{}); again != nil || back.Err == nil || back.Err.Code != fault.Code {
				t.Fatalf("the answer %s is not read: %v", answer, again)
			}
			return
		}
		var out []byte
		switch m.Kind() {
		case jsonrpc.Request:
			out = jsonrpc.AppendRequest(nil, m.ID, m.Method, m.Params.Raw())
		case jsonrpc.Notification:
			out = jsonrpc.AppendNotification(nil, m.Method, m.Params.Raw())
		case jsonrpc.Response:
			if out = jsonrpc.AppendResult(nil, m.ID, m.Result.Raw()); m.Err != nil {
				out = jsonrpc.AppendError(nil, m.ID, m.Err)
			}
		default:
			t.Fatalf("got the kind %d of %s", m.Kind(), text)
		}
		back, fault := jsonrpc.Read(out, strictjson.Limits{})
		if fault != nil {
			t.Fatalf("%s became %s, which is refused: %v", text, out, fault)
		}
		if back.Kind() != m.Kind() || !bytes.Equal(back.ID, m.ID) || back.Method != m.Method || !bytes.Equal(back.Params.Raw(), m.Params.Raw()) ||
			!bytes.Equal(back.Result.Raw(), m.Result.Raw()) || (back.Err == nil) != (m.Err == nil) {
			t.Fatalf("%s became %s", text, out)
		}
	})
}
