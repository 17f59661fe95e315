package a2a_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/host"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAMessageThatCameThroughTooManyHubsIsRefused(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	for _, b := range bindings {
		for metadata, want := range map[string]string{
			`{"urn:dragoman:a2a:hops:1":8,"x":1}`: "",
			`{"urn:dragoman:a2a:hops:1":9}`:       "metadata[urn:dragoman:a2a:hops:1]: the message came through 9 hubs, the limit is 8",
			`{"urn:dragoman:a2a:hops:1":-1}`:      "metadata[urn:dragoman:a2a:hops:1]: want 0 or more, got -1",
			`{"urn:dragoman:a2a:hops:1":"many"}`:  "metadata[urn:dragoman:a2a:hops:1]: ",
		} {
			_, _, failed := f.call(b, "shout", wire.MethodSend, strings.TrimSuffix(message(core.NewID(), "hi", ""), "}")+`,"metadata":`+metadata+`}`)
			if (failed == nil) != (want == "") || failed != nil && !strings.Contains(failed.Message, want) {
				t.Errorf("%s, %s: got %+v, want the error %q", b, metadata, failed, want)
			}
		}
	}
}

// circle joins an agent of the hub that is reached at a card of the hub.
func (f *fixture) circle(id, of string) {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	transport := &http.Transport{}
	a := client.New(client.Options{URL: f.url + "/a2a/" + of, HTTP: &http.Client{Transport: transport}})
	s := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: wire.Dialect})
	var running sync.WaitGroup
	f.t.Cleanup(func() {
		stop()
		s.Close(nil)
		running.Wait()
		transport.CloseIdleConnections()
	})
	card := core.Card{ID: core.AgentID(id), Name: id, Dialect: wire.Dialect, MaxConcurrent: 100}
	if err := s.Join(card, hub.JoinOptions{}); err != nil {
		f.t.Fatal(err)
	}
	ready := make(chan struct{})
	running.Go(func() { _ = a.Run(ctx, func(coreagent.Profile) { close(ready) }) })
	<-ready
	running.Go(func() { _ = host.Serve(ctx, s, a, nil) })
}

func TestAnAgentThatIsTheHubItselfEndsInALoop(t *testing.T) {
	f := start(t, a2a.Options{})
	f.circle("one", "one")
	got := f.send(rpc, "one", message("m", "hi", ""))
	if got.Status.State != wire.StateRejected || !strings.Contains(string(got.Metadata), `"loop"`) {
		t.Errorf("got %+v with the metadata %s, want it rejected as a loop", got.Status, got.Metadata)
	}
	tasks, _, err := f.hub.Tasks(context.Background(), core.Principal{ID: "local", Operator: true}, task.Filter{Limit: 100})
	if err != nil || len(tasks) != 9 {
		t.Errorf("got %d tasks and %v, want 9: one for each hop", len(tasks), err)
	}
}

func TestTheCardOfTheHubItselfIsRefused(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout")
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	a := client.New(client.Options{Hub: f.hub.ID(), URL: f.url + "/a2a/shout", HTTP: &http.Client{Transport: transport}})
	err := a.Run(context.Background(), func(coreagent.Profile) { t.Error("Run got ready, want an error") })
	var fault *core.Fault
	if !errors.As(err, &fault) || !strings.Contains(fault.Message, "it is a card of this hub") {
		t.Errorf("Run: got %v, want the card refused", err)
	}
}
