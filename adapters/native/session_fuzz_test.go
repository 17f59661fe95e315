package native_test

import (
	"bytes"
	"context"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// FuzzSession checks that a session survives any input of a peer, one frame a line: it answers a
// later call, unless a greeting of another version has ended it, and other sessions continue.
func FuzzSession(f *testing.F) {
	for _, s := range []string{
		`{"call":{"id":"1","act":"open","command":{"request":{"to":"echo","content":"?"}}}}` + "\n" + `{"call":{"id":"2","act":"watch_all","command":{}}}`,
		`{"call":{"id":"1","act":"join","command":{"card":{"capabilities":["a"],"features":["approvals"]}}}}` + "\n" + `{"call":{"id":"2","act":"open","command":{"request":{"to":"peer","content":"?"}}}}`,
		`{"call":{"id":"1","act":"subscribe","command":{"topics":["a.>"]}}}` + "\n" + `{"call":{"id":"2","act":"open","command":{"request":{"intent":"notify","to":"hub","notice":{"topic":"a.b"}}}}}`,
		`{"call":{"id":"1","act":"provide","command":{"pack":"p"}},"with":{"tools":[{"name":"x"}]}}` + "\n" + `{"call":{"id":"2","act":"call_tool","command":{"tool":"x"}}}`,
		`{"call":{"id":"1","act":"list","command":{"what":"questions"}},"with":{"watch":true}}` + "\n" + `{"call":{"id":"1","act":"list","command":{"what":"agents"}},"with":{"stop":true,"limit":1}}`,
		`{"call":{"id":"1","act":"follow","command":{"thread":"t"}}}` + "\n" + `{"call":{"id":"1","act":"configure","command":{"agent":"echo","max_concurrent":1}}}`,
		`{"event":{"task":"t","kind":"x"}}` + "\n" + `{"answer":{"execution":"e","output":1}}` + "\n" + `{"tools":{"id":"1"}}` + "\n" + `{"hello":{"native":1}}`,
		`{"load":{"state":"draining"}}` + "\n" + `{"vitals":{"active":1}}` + "\n" + `{"progress":{"execution":"e"}}` + "\n" + `{"ask":{"id":"1","task":"t","question":{"question":"?"}}}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		lines := bytes.Split(script, []byte("\n"))
		if len(lines) > 8 {
			return
		}
		withHub(t, func(s *setup) {
			s.echo()
			end, reason := s.connect(native.Options{AgentID: "peer"})
			ended := false
			for _, line := range lines {
				if err := end.Send(s.Context(), line); err != nil {
					ended = true
					break
				}
			}
			synctest.Wait()
			if !ended {
				r := raw{s, end}
				if err := end.Send(s.Context(), []byte(`{"load":{"state":"idle","id":"last"}}`)); err == nil {
					ended = !r.until("last")
				}
			}
			if ended {
				if got := <-reason; got.Cause != link.Protocol {
					t.Errorf("%q: got %v, want the connection open", script, got.Error())
				}
			}
			if answer, err := s.peer("other").Ask(s.Context(), ask("echo", "still here"), nil); err != nil || answer.Text != "still here" {
				t.Errorf("another session: got %+v and %v, want an answer", answer, err)
			}
		})
	})
}

// echo connects an agent that says the request back.
func (s *setup) echo() {
	server, end := coretest.Pipe[[]byte, []byte](0)
	ctx, stop := context.WithCancel(s.Context())
	ended := make(chan struct{}, 2)
	go func() {
		native.Accept(ctx, s.hub, server, newPeer("echo"))
		ended <- struct{}{}
	}()
	joined := make(chan struct{})
	go func() {
		_ = client.Work(ctx, end, core.Card{ID: "echo", MaxConcurrent: 4}, func(_ context.Context, r core.Request, say func(core.Body) error) error {
			return say(core.Text{Text: r.Content})
		}, client.WorkOptions{Joined: func(*client.Client) { close(joined) }}) // it is stopped
		ended <- struct{}{}
	}()
	<-joined
	s.Cleanup(func() {
		stop()
		<-ended
		<-ended
	})
}

// until reads frames up to the answer to an id, and reports whether it came before the end.
func (r raw) until(id string) bool {
	for {
		frame, err := r.end.Receive(r.Context())
		if err != nil {
			return false
		}
		if kind, v, err := wire.DecodeHub(frame); err == nil && kind == "result" && text(v.Get("id")) == id {
			return true
		}
	}
}
