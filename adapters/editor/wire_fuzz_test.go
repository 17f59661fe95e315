package editor_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzUpdate checks that no update makes the codec panic, and that what is left of a chunk
// restores it.
func FuzzUpdate(f *testing.F) {
	for _, seed := range []string{
		`{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"messageId":"m"}}`,
		`{"sessionId":"\u0073","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"resource","resource":{"uri":"u","blob":"aGk="}},"_meta":{}}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":"x","content":[{"type":"diff","path":"/a","newText":"b"}]}}`,
		`{"sessionId":"s","update":{"sessionUpdate":"plan","entries":[]}}`, `{"sessionId":"s","update":{"sessionUpdate":"hologram"}}`, `{}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			return
		}
		u, err := wire.ReadUpdate(v)
		if err != nil {
			return
		}
		_, _ = u.ToolCall()
		_, _ = u.Block()
		piece, is := u.Text()
		if !is {
			return
		}
		var halves strictjson.Halves
		s := halves.Join(piece) + halves.Rest()
		_, more, _ := wire.OfForeign(u.Rest())
		m, fault := jsonrpc.Read(wire.AppendChunk(nil, string(u.SessionID), u.Kind, s, more), strictjson.Limits{Depth: 70})
		if fault != nil {
			t.Fatalf("%s is not restored: %v", text, fault)
		}
		back, err := wire.ReadUpdate(m.Params)
		if err != nil {
			t.Fatalf("%s is not restored: %v", text, err)
		}
		if again, ok := back.Text(); !ok || string(again) != s || back.Kind != u.Kind || !bytes.Equal(back.SessionID, u.SessionID) {
			t.Fatalf("%s became %s", text, back.Whole.Raw())
		}
		if a, b := u.Whole.Len(), back.Whole.Len(); a != b {
			t.Fatalf("%s became %s", text, back.Whole.Raw())
		}
	})
}

// FuzzRead checks that what a method takes is written as what it takes.
func FuzzRead(f *testing.F) {
	var names []string
	for name := range codecs {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		for _, c := range texts[name] {
			f.Add(uint8(i), []byte(c.in))
		}
	}
	f.Fuzz(func(t *testing.T, method uint8, text []byte) {
		v, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			return
		}
		codec := codecs[names[int(method)%len(names)]]
		out, err := codec(v)
		if errors.Is(err, errUnwritable) {
			return
		}
		if err != nil {
			var fault *jsonrpc.Error
			if !errors.As(err, &fault) || fault.Code != jsonrpc.CodeInvalidParams || fault.Message == "" {
				t.Fatalf("%s: got %v, want invalid params that say why", text, err)
			}
			return
		}
		again, err := strictjson.Parse(out, strictjson.Limits{Depth: 70})
		if err != nil {
			t.Fatalf("%s was written as %s: %v", text, out, err)
		}
		if _, err := codec(again); err != nil {
			t.Fatalf("%s was written as %s: %v", text, out, err)
		}
	})
}
