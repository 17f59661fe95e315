package a2a_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestAMessageThatCameThroughTooManyHubsIsRefused(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	for _, b := range bindings {
		for metadata, want := range map[string]string{
			`{"urn:dragoman:a2a:chain:1":{"hops":8,"tasks":["a"]},"x":1}`: "",
			`{"urn:dragoman:a2a:chain:1":{"hops":9}}`:                     "the chain of tasks has 9 hops, the limit is 8",
			`{"urn:dragoman:a2a:chain:1":{"hops":-1}}`:                    "metadata[urn:dragoman:a2a:chain:1].hops: want 0 or more, got -1",
			`{"urn:dragoman:a2a:chain:1":{"hops":"many"}}`:                "metadata[urn:dragoman:a2a:chain:1].hops: ",
		} {
			_, _, failed := f.call(b, "shout", wire.MethodSend, strings.TrimSuffix(message(core.NewID(), "hi", ""), "}")+`,"metadata":`+metadata+`}`)
			if (failed == nil) != (want == "") || failed != nil && !strings.Contains(failed.Message, want) {
				t.Errorf("%s, %s: got %+v, want the error %q", b, metadata, failed, want)
			}
		}
	}
}

// user is a transport for the requests of a principal; "" is the operator.
type user struct {
	*http.Transport
	id string
}

func (u user) RoundTrip(r *http.Request) (*http.Response, error) {
	if u.id != "" {
		r = r.Clone(r.Context())
		r.Header.Set("X-User", u.id)
	}
	return u.Transport.RoundTrip(r)
}

// remote joins an agent of the hub that is reached at a card of a hub, as a principal there.
func (f *fixture) remote(id, at, as string) {
	f.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	transport := &http.Transport{}
	a := client.New(client.Options{URL: at, HTTP: &http.Client{Transport: user{transport, as}}})
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
	ready := make(chan error, 2)
	running.Go(func() { ready <- a.Run(ctx, func(coreagent.Profile) { ready <- nil }) })
	if err := <-ready; err != nil {
		f.t.Fatalf("connecting %s: %v", id, err)
	}
	running.Go(func() { _ = coretest.Serve(ctx, s, a, nil) })
}

// wantLoop fails the test unless a task was rejected as a loop.
func wantLoop(t *testing.T, got wire.Task) {
	t.Helper()
	if got.Status.State != wire.StateRejected || !strings.Contains(string(got.Metadata), `"loop"`) {
		t.Errorf("got %+v with the metadata %s, want it rejected as a loop", got.Status, got.Metadata)
	}
}

// hops returns the hops of all tasks of the hub, in the order in which they were opened.
func (f *fixture) hops() (all []int) {
	f.t.Helper()
	page, err := f.hub.Tasks(context.Background(), core.Principal{ID: "local", Operator: true}, task.Filter{Limit: 100})
	if err != nil {
		f.t.Fatal(err)
	}
	for _, one := range slices.Backward(page.Tasks) {
		all = append(all, one.Hops)
	}
	return all
}

func TestAnAgentThatIsTheHubItselfEndsInALoop(t *testing.T) {
	f := start(t, a2a.Options{})
	f.remote("one", f.url+"/a2a/one", "")
	wantLoop(t, f.send(rpc, "one", message("m", "hi", "")))
	if got := f.hops(); !slices.Equal(got, []int{0, 1}) {
		t.Errorf("got tasks with %v hops, want 0, and 1 that is refused", got)
	}
}

// asksOn joins an agent that asks another agent of the hub in the words that it gets, and ends as
// that one does: one of another dialect, which passes on nothing of the message.
func (f *fixture) asksOn(id string, other core.AgentID) {
	a := f.agent(id)
	under := map[*task.Task]*task.Task{} // the task because of which another was opened
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			b, err := a.s.Next(context.Background())
			if err != nil {
				return
			}
			for _, e := range b.Events {
				switch body := e.Body.(type) {
				case core.Assigned:
					if b.Role != task.Agent {
						continue
					}
					asked, err := a.s.Open(core.Request{To: core.ToAgent(other), Content: b.Task.Request().Content, Cause: b.Task.ID()}, hub.OpenOptions{})
					if err != nil {
						a.say(b.Task, core.Failed{Fault: core.AsFault(err)})
						continue
					}
					under[asked] = b.Task
				case core.Failed:
					if above := under[b.Task]; above != nil {
						a.say(above, body)
					}
				}
			}
		}
	}()
	f.t.Cleanup(func() {
		a.s.Close(nil)
		<-done
	})
}

func TestACircleOfHubsInWhichAnAgentOfAnotherDialectAsksOnEnds(t *testing.T) {
	for _, c := range []struct {
		name, as string
		one, two []int // the hops of the tasks of each hub
	}{
		// The second hub finds its own task above the message that comes back.
		{"one principal", "", []int{0, 3}, []int{1, 2, 4}},
		// What others ask is not the cause of what a principal asks; its hops count.
		{"a principal at each hub", "stranger", []int{0, 3, 6, 9}, []int{1, 2, 4, 5, 7, 8}},
	} {
		t.Run(c.name, func(t *testing.T) {
			one, two := start(t, a2a.Options{}), start(t, a2a.Options{})
			two.asksOn("relay", "back")
			one.remote("far", two.url+"/a2a/relay", c.as)
			two.remote("back", one.url+"/a2a/far", c.as)
			wantLoop(t, one.send(rest, "far", message("m", "hi", "")))
			if got := one.hops(); !slices.Equal(got, c.one) {
				t.Errorf("the first hub has tasks with %v hops, want %v", got, c.one)
			}
			if got := two.hops(); !slices.Equal(got, c.two) {
				t.Errorf("the second hub has tasks with %v hops, want %v", got, c.two)
			}
		})
	}
}

func TestATaskThatComesBackOverAnotherHubHasItsCause(t *testing.T) {
	one, two := start(t, a2a.Options{}), start(t, a2a.Options{})
	one.agent("shout").shouts()
	two.remote("back", one.url+"/a2a/shout", "")
	one.remote("far", two.url+"/a2a/back", "")
	asked := one.send(rpc, "far", message("m", "hi", ""))
	if answerOf(asked) != "HI" {
		t.Fatalf("got %+v, want the answer of the agent behind both hubs", asked)
	}
	page, err := one.hub.Tasks(context.Background(), core.Principal{ID: "local", Operator: true}, task.Filter{Limit: 100})
	if err != nil || len(page.Tasks) != 2 || string(page.Tasks[0].Request.Cause) != asked.ID || page.Tasks[0].Hops != 2 {
		t.Errorf("got the tasks %+v and %v, want the last to have 2 hops and the cause %s", page.Tasks, err, asked.ID)
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
