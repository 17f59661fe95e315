package a2a_test

import (
	"bytes"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// FuzzItem checks that no item of a stream makes the codec panic, and that one that was read
// is written in a form that is read again as the same.
func FuzzItem(f *testing.F) {
	for _, item := range items {
		f.Add([]byte(item))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := wire.Parse(text)
		if err != nil {
			return
		}
		item, err := new(wire.ItemReader).Read(v)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("got an empty error, want one that says what to change")
			}
			return
		}
		again(t, item.AppendJSON(nil), func(v strictjson.Value) ([]byte, error) {
			item, err := new(wire.ItemReader).Read(v)
			return item.AppendJSON(nil), err
		})
	})
}

// again checks that read accepts what it wrote, and writes the same.
func again(t *testing.T, written []byte, read func(strictjson.Value) ([]byte, error)) {
	v, err := wire.Parse(written)
	if err != nil {
		t.Fatalf("%s: %v", written, err)
	}
	if back, err := read(v); err != nil || !bytes.Equal(back, written) {
		t.Fatalf("got %s and %v, want %s", back, err, written)
	}
}

// FuzzRequest checks the same of every request, and that the neutral request of a message
// becomes a message again.
func FuzzRequest(f *testing.F) {
	f.Add([]byte(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"},{"raw":"aGk"},{"data":1}]},"configuration":{"historyLength":0,"taskPushNotificationConfig":{"url":"http://h"}}}`))
	f.Add([]byte(`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hi"}]},"metadata":{"urn:dragoman:a2a:chain:1":{"hops":3,"tasks":["a"]},"x":[1]}}`))
	f.Add([]byte(`{"id":"t","historyLength":3,"metadata":{"urn:dragoman:a2a:cursor:1":"1.3"}}`))
	f.Add([]byte(`{"status":"TASK_STATE_WORKING","pageSize":5,"pageToken":"p","statusTimestampAfter":"2026-11-22T03:07:17.640Z"}`))
	f.Add([]byte(`{"taskId":"t","id":"p","url":"https://h","authentication":{"scheme":"Bearer"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := wire.Parse(text)
		if err != nil {
			return
		}
		if r, err := wire.Read[wire.TaskRequest](v); err == nil {
			_, _ = r.Cursor()
		}
		_, _ = wire.Read[wire.ListTasksRequest](v)
		_, _ = wire.Read[wire.PushConfig](v)
		_, _ = wire.Read[wire.PushRequest](v)
		r, err := wire.ReadSendRequest(v)
		if err != nil {
			return
		}
		if c, err := r.Chain(); err == nil && c.Hops < 100 {
			err = r.SetChain(c.Below("t", 0))
			if got, err2 := r.Chain(); err != nil || err2 != nil || got.Hops != c.Hops+1 || got.Tasks[len(got.Tasks)-1] != "t" {
				t.Fatalf("%s: got the chain %+v, %v and %v below %+v, want one more", text, got, err, err2, c)
			}
		}
		back := wire.SendRequestOf(wire.RequestOf(r))
		back.Message.ID = r.Message.ID
		written, err := strictjson.Marshal(back)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		again(t, written, func(v strictjson.Value) ([]byte, error) {
			r, err := wire.ReadSendRequest(v)
			if err != nil {
				return nil, err
			}
			return strictjson.Marshal(r)
		})
	})
}

// FuzzCard checks that no card makes the codec panic, and that errors of peers are read
// whatever they are.
func FuzzCard(f *testing.F) {
	f.Add([]byte(`{"name":"n","description":"","version":"1","supportedInterfaces":[{"url":"u","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],"capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}`))
	f.Add([]byte(`{"error":{"code":404,"status":"NOT_FOUND","message":"m","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"a":"b"}}]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := wire.ReadCard(text); err == nil {
			if _, err := strictjson.Marshal(c); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
		}
		if e := wire.ReadErrorBody(500, text); e.Fault().Message == "" {
			t.Fatalf("%s: got no message, want one", text)
		}
	})
}
