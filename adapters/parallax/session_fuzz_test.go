package parallax_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
)

// FuzzSession checks that no frame of an agent, one a line, closes its connection, except
// a disconnect. The promises of the hub are checked after each run.
func FuzzSession(f *testing.F) {
	for _, frame := range pageSamples(f) {
		f.Add(oneLine(f, frame))
	}
	f.Add([]byte(`{"type":"task_result","id":"m","payload":{"taskId":"TASK","result":{"content":"c","files":[{"name":"a","data":"aGk="}]}}}`))
	f.Add([]byte(`{"type":"task_progress","id":"m","payload":{"taskId":"TASK","seq":2,"text":"x"}}` + "\n" + `{"type":"task_error","id":"m","payload":{"taskId":"TASK","error":{"code":"X"}}}`))
	f.Add([]byte(`{"type":"task_request","id":"m","payload":{"to":"*","input":"x"}}` + "\n" + `{"type":"task_cancel","id":"m","payload":{"requestId":"m"}}`))
	f.Fuzz(func(t *testing.T, lines []byte) {
		withHub(t, func(s *setup) {
			p := s.registered(parallax.Options{AgentID: "a", MaxMessagesPerSecond: -1}, full)
			a := s.requester()
			a.ask("a", "go")
			assigned := decode[wire.Task](p, p.receive(wire.TypeTask))
			for line := range bytes.Lines(lines) {
				frame := withIDs(string(bytes.TrimSpace(line)), assigned)
				if m, err := wire.Decode([]byte(frame)); err == nil && m.Type == wire.TypeDisconnect {
					continue
				}
				p.send(frame)
				p.drain()
			}
			p.send(`{"type":"heartbeat","id":"last","payload":{}}`)
			for {
				if m := next(p); m.Type == wire.TypeHeartbeatAck && m.ID == "last" {
					return
				}
			}
		})
	})
}

// drain reads the messages sent so far.
func (p *peer) drain() {
	for {
		synctest.Wait()
		ctx, cancel := context.WithCancel(p.Context())
		cancel()
		if _, err := p.conn.Receive(ctx); err != nil {
			return
		}
	}
}

func oneLine(t testing.TB, frame []byte) []byte {
	t.Helper()
	var line bytes.Buffer
	if err := json.Compact(&line, frame); err != nil {
		t.Fatal(err)
	}
	return line.Bytes()
}
