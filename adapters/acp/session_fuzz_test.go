package acp_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// FuzzSession checks that a session survives any input of a peer, one envelope a line: it
// answers a later ping, and other sessions continue.
func FuzzSession(f *testing.F) {
	for _, s := range []string{
		`{"id":"1","to":"echo","kind":"query","payload":{"question":"?"}}` + "\n" + `{"id":"2","ref":"1","kind":"cancel"}`,
		`{"id":"1","to":"echo","kind":"delegate","payload":{"task":"!","report_back":false}}` + "\n" + `{"id":"1","kind":"pong","ref":"1","payload":{"status":"busy","uptime_secs":0,"active_tasks":0}}`,
		`{"id":"1","kind":"subscribe","payload":{"topics":["a.>"]}}` + "\n" + `{"id":"2","kind":"notify","payload":{"topic":"a.b"}}` + "\n" + `{"id":"3","kind":"unsubscribe"}`,
		`{"id":"1","kind":"capabilities","payload":{"max_concurrent_tasks":2}}` + "\n" + `{"id":"2","to":"peer","kind":"ping"}` + "\n" + `{"id":"3","to":"echo","kind":"odd"}`,
		`{"id":"1","kind":"discover","payload":{"domain":"a"}}` + "\n" + `{"id":"2","kind":"result","ref":"1","payload":{"status":"partial","outcome":""}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		lines := bytes.Split(script, []byte("\n"))
		if len(lines) > 8 {
			return
		}
		withHub(t, func(t *testing.T, s *setup) {
			s.work(core.Card{ID: "echo", MaxConcurrent: 4}, acpclient.WorkOptions{}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
				return say(core.Text{Text: r.Content})
			})
			conn, _ := s.connect(acp.Options{AgentID: "peer"})
			for _, line := range lines {
				if err := conn.Send(t.Context(), line); err != nil {
					t.Fatalf("%q: got %v, want the connection open", line, err)
				}
			}
			synctest.Wait()
			for _, a := range []*peer{{setup: s, conn: conn, name: "peer"}, s.peer("other")} {
				id := core.NewID()
				a.send(`{"id":"%s","to":"hub","kind":"ping"}`, id)
				for e := a.next(); e.Kind != wire.KindPong || e.Ref != id; {
					e = a.next()
				}
			}
		})
	})
}
