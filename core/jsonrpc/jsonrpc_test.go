package jsonrpc_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestAMessageIsReadWithItsPartsAsTheyWereSent(t *testing.T) {
	for _, c := range []struct {
		text                       string
		kind                       jsonrpc.Kind
		id, method, params, result string
	}{
		{` {"jsonrpc":"2.0","id": 1.0,"method":"a/b","params":{"x":[1, 2]}} `, jsonrpc.Request, `1.0`, "a/b", `{"x":[1, 2]}`, ""},
		{`{"params":[1],"method":"m","id":"\u0041","jsonrpc":"2.0"}`, jsonrpc.Request, `"\u0041"`, "m", `[1]`, ""},
		{`{"jsonrpc":"2.0","id":0,"method":"m","params":null}`, jsonrpc.Request, `0`, "m", "", ""},
		{`{"jsonrpc":"2.0","id":null,"method":"m"}`, jsonrpc.Request, `null`, "m", "", ""},
		{`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":0},"more":true}`, jsonrpc.Notification, "", "$/cancel_request", `{"requestId":0}`, ""},
		{`{"jsonrpc":"2.0","id":"x","result":null}`, jsonrpc.Response, `"x"`, "", "", `null`},
		{`{"jsonrpc":"2.0","id":7,"result":{"a":1},"error":null}`, jsonrpc.Response, `7`, "", "", `{"a":1}`},
	} {
		m, fault := jsonrpc.Read([]byte(c.text), strictjson.Limits{})
		if fault != nil {
			t.Errorf("%s: %v", c.text, fault)
			continue
		}
		if m.Kind() != c.kind || string(m.ID) != c.id || m.Method != c.method || string(m.Params.Raw()) != c.params || string(m.Result.Raw()) != c.result {
			t.Errorf("%s: got %v id %s method %q params %s result %s", c.text, m.Kind(), m.ID, m.Method, m.Params.Raw(), m.Result.Raw())
		}
		if want := strings.TrimSpace(c.text); string(m.Whole.Raw()) != want {
			t.Errorf("got the whole message %s, want %s", m.Whole.Raw(), want)
		}
	}
}

func TestTheErrorOfAResponseIsReadWithItsData(t *testing.T) {
	m, fault := jsonrpc.Read([]byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32000.0,"message":"no \"key\"","data":{"why": 1}}}`), strictjson.Limits{})
	if fault != nil || m.Kind() != jsonrpc.Response || string(m.ID) != "null" || m.Err == nil {
		t.Fatalf("got %+v, %v", m, fault)
	}
	if m.Err.Code != -32000 || m.Err.Message != `no "key"` || string(m.Err.Data) != `{"why": 1}` || m.Err.Error() != `no "key" (code -32000)` {
		t.Errorf("got %+v (%v)", m.Err, m.Err)
	}
}

func TestWhatIsNoMessageIsRefusedWithAdviceAndItsID(t *testing.T) {
	for _, c := range []struct {
		text string
		code int
		want string
		id   string
	}{
		{"", jsonrpc.CodeInvalidRequest, "the message is empty: send a JSON-RPC 2.0 object", ""},
		{" [{}]", jsonrpc.CodeInvalidRequest, "the message is a batch: send one message at a time", ""},
		{`"hello"`, jsonrpc.CodeInvalidRequest, `the message is "hello": send a JSON-RPC 2.0 object`, ""},
		{"npm warn deprecated", jsonrpc.CodeParseError, "not JSON", ""},
		{`{"jsonrpc":"2.0","id":1,"id":2,"method":"m"}`, jsonrpc.CodeParseError, "duplicate key", ""},
		{`{"jsonrpc":"2.0","id":[1],"method":"m"}`, jsonrpc.CodeInvalidRequest, "id: want a number or a string, got [1]", ""},
		{`{"jsonrpc":"2.0","id":"` + strings.Repeat("x", 2000) + `","method":"m"}`, jsonrpc.CodeInvalidRequest, "id: 2002 bytes long, the limit is 1024", ""},
		{`{"id":1,"method":"m"}`, jsonrpc.CodeInvalidRequest, `jsonrpc: want "2.0", got nothing`, "1"},
		{`{"jsonrpc":2.0,"id":1,"method":"m"}`, jsonrpc.CodeInvalidRequest, `jsonrpc: want "2.0", got 2.0`, "1"},
		{`{"jsonrpc":"2.0","id":1}`, jsonrpc.CodeInvalidRequest, "a message has a method, a result or an error, this one has none", "1"},
		{`{"jsonrpc":"2.0","id":1,"error":null}`, jsonrpc.CodeInvalidRequest, "a message has a method, a result or an error, this one has none", "1"},
		{`{"jsonrpc":"2.0","id":1,"result":1,"error":{"code":1,"message":""}}`, jsonrpc.CodeInvalidRequest, "a response has a result or an error, this one has both", "1"},
		{`{"jsonrpc":"2.0","result":1}`, jsonrpc.CodeInvalidRequest, "id: a response has the id of its request, this one has none", ""},
		{`{"jsonrpc":"2.0","id":1,"method":""}`, jsonrpc.CodeInvalidRequest, `method: want a method name, got ""`, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":4}`, jsonrpc.CodeInvalidRequest, `method: want a method name, got 4`, "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","result":1}`, jsonrpc.CodeInvalidRequest, "a message has a method, or a result or error: this one has both", "1"},
		{`{"jsonrpc":"2.0","id":1,"method":"m","params":"p"}`, jsonrpc.CodeInvalidRequest, `params: want an object or an array, got "p"`, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":"boom"}`, jsonrpc.CodeInvalidRequest, `error: want an object with a code and a message, got "boom"`, "1"},
		{`{"jsonrpc":"2.0","id":1,"error":{"code":"x","message":"boom"}}`, jsonrpc.CodeInvalidRequest, `error: code: want a whole number, got a string`, "1"},
	} {
		m, fault := jsonrpc.Read([]byte(c.text), strictjson.Limits{})
		if fault == nil || fault.Code != c.code || !strings.Contains(fault.Message, c.want) {
			t.Errorf("%.60s: got %v, want code %d, %s", c.text, fault, c.code, c.want)
		}
		if string(m.ID) != c.id {
			t.Errorf("%.60s: got the id %s, want %s", c.text, m.ID, c.id)
		}
	}
}

func TestAnAnswerIsKnownWhereItIsRefused(t *testing.T) {
	for text, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1,"result":null,"error":{"code":1,"message":"both"}}`: true,
		`{"jsonrpc":"2.0","id":1,"error":"no object"}`:                               true,
		`{"id":1,"result":{}}`:                             true,
		`{"jsonrpc":"2.0","id":1}`:                         false,
		`{"jsonrpc":"2.0","id":1,"method":7}`:              false,
		`{"jsonrpc":"2.0","id":1,"method":"a","result":1}`: false,
		`[]`: false,
		`{`:  false,
	} {
		m, fault := jsonrpc.Read([]byte(text), strictjson.Limits{})
		if got := m.IsAnswer(); fault == nil || got != want {
			t.Errorf("%s: got %t (%v), want it refused, and %t", text, got, fault, want)
		}
	}
}

func TestALimitOfTheCallerHolds(t *testing.T) {
	text := []byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[[[1]]]}}`)
	if _, fault := jsonrpc.Read(text, strictjson.Limits{Depth: 4}); fault == nil || fault.Code != jsonrpc.CodeParseError {
		t.Errorf("got %v, want the nesting refused", fault)
	}
	if _, fault := jsonrpc.Read(text, strictjson.Limits{Bytes: 20}); fault == nil || fault.Code != jsonrpc.CodeParseError {
		t.Errorf("got %v, want the size refused", fault)
	}
}

func TestWhatIsWrittenIsReadAsTheSame(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{string(jsonrpc.AppendRequest(nil, jsonrpc.NumberID(3), "a<b>", json.RawMessage(`{"x":1}`))), `{"jsonrpc":"2.0","id":3,"method":"a<b>","params":{"x":1}}`},
		{string(jsonrpc.AppendRequest(nil, json.RawMessage(`"a"`), "m", nil)), `{"jsonrpc":"2.0","id":"a","method":"m"}`},
		{string(jsonrpc.AppendNotification([]byte("> "), "m", json.RawMessage(`[]`))), `> {"jsonrpc":"2.0","method":"m","params":[]}`},
		{string(jsonrpc.AppendResult(nil, json.RawMessage(`0`), nil)), `{"jsonrpc":"2.0","id":0,"result":null}`},
		{string(jsonrpc.AppendResult(nil, json.RawMessage(`null`), json.RawMessage(`{}`))), `{"jsonrpc":"2.0","id":null,"result":{}}`},
		{
			string(jsonrpc.AppendError(nil, nil, &jsonrpc.Error{Code: -32602, Message: "two\nlines", Data: json.RawMessage(`{"a":1}`)})),
			`{"jsonrpc":"2.0","id":null,"error":{"code":-32602,"message":"two\nlines","data":{"a":1}}}`,
		},
	} {
		if c.got != c.want {
			t.Errorf("got  %s\nwant %s", c.got, c.want)
		}
		if _, fault := jsonrpc.Read([]byte(strings.TrimPrefix(c.got, "> ")), strictjson.Limits{}); fault != nil {
			t.Errorf("%s is not read: %v", c.got, fault)
		}
	}
}

// A message is read in one pass, and its params are decoded without another.
func TestTheTextOfAMessageIsReadOnce(t *testing.T) {
	text := `{"jsonrpc":"2.0","method":"session/update","params":{"text":"` + strings.Repeat("x", 10_000) + `","n":1}}`
	var in struct {
		N int `json:"n"`
	}
	read := strictjson.Visits(func() {
		m, fault := jsonrpc.Read([]byte(text), strictjson.Limits{})
		if fault != nil {
			t.Fatal(fault)
		}
		if err := m.Params.Decode(&in); err != nil {
			t.Fatal(err)
		}
	})
	if most := int64(len(text) + 100); read > most || in.N != 1 {
		t.Errorf("read %d bytes of a message of %d, want at most %d (n %d)", read, len(text), most, in.N)
	}
}
