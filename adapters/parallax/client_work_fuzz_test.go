package parallax_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

// FuzzWork sends frames of a hub, one a line, to an agent that asks others, and checks that
// Work returns with a reason once the hub disconnects.
func FuzzWork(f *testing.F) {
	const registered = `{"type":"registered","id":"register","payload":{"agentId":"a","capabilities":[],"config":{"heartbeatInterval":10000,"taskTimeout":30000,"extensions":["task_accepted","task_progress","task_request"]}}}` + "\n"
	for _, frame := range coretest.ReadFiles(f, "../../schemas/parallax/samples/*.json") {
		line := bytes.NewBufferString(registered)
		if err := json.Compact(line, frame); err != nil {
			f.Fatal(err)
		}
		f.Add(line.Bytes(), false)
	}
	const given = registered + `{"type":"task","payload":{"taskId":"t","executionId":"t.1","input":{"content":"ask"}}}` + "\n"
	for _, frames := range []string{
		``,
		`{"type":"task_cancelled","payload":{"taskId":"t","executionId":"t.1","reason":"enough"}}`,
		`{"type":"task_cancelled","payload":{"taskId":"t","executionId":"other"}}` + "\n" + given,
		`{"type":"task_accepted","payload":{"requestId":"ask_2"}}` + "\n" + `{"type":"task_result","payload":{"requestId":"ask_2","result":{"content":"x","files":[{"name":"f","data":""}]}}}`,
		`{"type":"task_progress","payload":{"requestId":"ask_2","text":"x","retrying":{},"foreign":{},"mood":1}}` + "\n" + `{"type":"task_error","payload":{"requestId":"ask_2","error":{"code":"X"},"partialResult":[1],"metadata":{"progress":[{"text":"y"}]}}}`,
		`{"type":"config_update","payload":{"config":{"heartbeatInterval":1e300}}}` + "\n" + `{"type":"heartbeat_ack","payload":{}}`,
		`{"type":"error","id":"register","payload":{"code":"DUPLICATE_NAME","message":"taken","fatal":true}}`,
		`{"type":"error","payload":{"code":"X","message":"","fatal":true}}` + "\n" + `{"type":"dance"}` + "\n" + `not JSON`,
	} {
		f.Add([]byte(given+frames), false)
		f.Add([]byte(given+frames), true)
	}
	f.Fuzz(func(t *testing.T, lines []byte, plain bool) {
		synctest.Test(t, func(t *testing.T) {
			mine, theirs := coretest.Pipe[[]byte, []byte](4)
			joined := make(chan *client.Agent, 1)
			worked := make(chan error, 1)
			go func() {
				handle := func(ctx context.Context, r core.Request, say func(core.Body) error) error {
					agent := <-joined
					joined <- agent
					ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
					defer cancel()
					answer, err := agent.Ask(ctx, core.Request{To: core.ToAny(), Content: r.Content, Foreign: r.Foreign}, nil)
					return errors.Join(err, say(core.Text{Text: answer.Text}))
				}
				worked <- client.Work(context.Background(), mine, core.Card{ID: "a", MaxConcurrent: 2}, handle,
					client.WorkOptions{Plain: plain, Registered: func(a *client.Agent) { joined <- a }})
			}()
			heard := make(chan struct{})
			go func() {
				defer close(heard)
				for {
					frame, err := theirs.Receive(context.Background())
					if err != nil {
						return
					}
					if _, err := wire.Decode(frame); err != nil {
						t.Errorf("the agent sent %s: %v", frame, err)
					}
				}
			}()
			for line := range bytes.Lines(lines) {
				if theirs.Send(context.Background(), bytes.Clone(bytes.TrimSpace(line))) != nil {
					break // the agent has left
				}
			}
			<-time.After(time.Minute)
			_ = theirs.Close(link.Reason{Cause: link.Normal})
			err := <-worked
			<-heard
			var fault *core.Fault
			var reason *link.Reason
			if err != nil && !errors.As(err, &fault) && !errors.As(err, &reason) {
				t.Errorf("got %v, want a Fault, a Reason or none", err)
			}
		})
	})
}
