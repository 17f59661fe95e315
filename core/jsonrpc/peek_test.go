package jsonrpc_test

import (
	"maps"
	"testing"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
)

func TestWhatAMessageIsIsFoundAtItsEnds(t *testing.T) {
	for _, c := range []struct {
		head, tail string
		id, method string
		response   bool
		params     map[string]string
	}{
		{head: `{"jsonrpc":"2.0","id":7,"result":{"content":[`, tail: `"}]}}`, id: "7", response: true},
		{head: `{"id":7,"jsonrpc":"2.0","error":{`, tail: `}}`, id: "7", response: true},
		{head: `{"id":7,"result":"abc`, id: "7", response: true},
		{head: `{"result":{"content":[{"id":3`, tail: `"}]},"jsonrpc":"2.0","id":7}`, id: "7", response: true},
		{head: `{"result":{`, tail: `},"id":"a-7","jsonrpc":"2.0"}` + "\n", id: `"a-7"`, response: true},
		{head: `{"result":{`, tail: `"id":7}}`, response: true},
		{head: `{"result":{`, tail: `"x\"id":7}`, response: true},
		{head: `{"result":{`, response: true},
		{head: `{"id":7,"method":"ask","params":{"sessionId":"s\"1","n":1,"a":{"b":"c"},"text":"xx`, id: "7", method: "ask", params: map[string]string{"sessionId": `s"1`}},
		{head: `{"method":"ask","params":{"sessionId":"s1","x":"`, tail: `"},"jsonrpc":"2.0","id":7}`, id: "7", method: "ask", params: map[string]string{"sessionId": "s1"}},
		{head: `{"method":"tell","params":{"sessionId":"s1","x":{"y":"`, tail: `","id":7}}}`, method: "tell", params: map[string]string{"sessionId": "s1"}},
		{head: `{"params":{"a":"b"},"id":null,"method":"x","more":"`, id: "null", method: "x", params: map[string]string{"a": "b"}},
		{head: `{"params":["a"`, tail: `,"id":7}`},
		{head: `{"params":null,"id":{},"method":7,"x":"`},
		{head: `garbage`, tail: `"id":7}`},
		{head: `["id",7`}, {head: `{"id":`}, {head: `{1`}, {},
	} {
		p := jsonrpc.Peek(c.head, c.tail)
		if string(p.ID) != c.id || p.Method != c.method || p.Response != c.response || !maps.Equal(p.Params, c.params) {
			t.Errorf("%s … %s:\n got %s %q %v %v\nwant %s %q %v %v", c.head, c.tail, p.ID, p.Method, p.Response, p.Params, c.id, c.method, c.response, c.params)
		}
	}
}

// FuzzPeek checks that an id that is found is one that an answer can have.
func FuzzPeek(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":7,"result":{"content":[`, `"}]}}`)
	f.Add(`{"method":"ask","params":{"sessionId":"s1","x":"`, `"},"jsonrpc":"2.0","id":"7"}`)
	f.Fuzz(func(t *testing.T, head, tail string) {
		if p := jsonrpc.Peek(head, tail); len(p.ID) > jsonrpc.MaxIDBytes {
			t.Errorf("got an id of %d bytes, want at most %d", len(p.ID), jsonrpc.MaxIDBytes)
		}
	})
}
