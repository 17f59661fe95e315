package pi_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

const (
	gatherTime  = 10 * time.Millisecond // delay of the lifecycle events of others
	gatherBytes = 16 << 10              // maximum size of a batch of them
	itemBytes   = 64                    // overhead that each is charged
)

// phasesOf returns the lifecycle events that a client received, in order.
func phasesOf(c *testClient) []string {
	var all []string
	for _, f := range c.received() {
		if phase, ok := strings.CutPrefix(f.Type, "command_"); ok {
			_, id, _ := strings.Cut(string(f.Raw), `"commandId":"`)
			id, _, _ = strings.Cut(id, `"`)
			all = append(all, phase+" "+id)
		}
	}
	return all
}

func TestAClientGetsTheLifecycleEventsItSelects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{})
		first := []string{"accepted 1", "started 1", "finished 1", "accepted 2", "started 2", "finished 2"}
		clients := map[string]struct {
			*testClient
			reads bool
			want  []string
		}{
			"all":                  {dial(t, s, pi.ConnOptions{}), false, append(first, "accepted 3", "started 3", "finished 3")},
			"session":              {dial(t, s, pi.ConnOptions{Lifecycle: pi.LifecycleSession}), true, []string{"accepted 2", "started 2", "finished 2", "accepted 3", "started 3", "finished 3"}},
			"session of no reader": {dial(t, s, pi.ConnOptions{Lifecycle: pi.LifecycleSession}), false, nil},
			"own":                  {dial(t, s, pi.ConnOptions{Lifecycle: pi.LifecycleOwn}), true, nil},
			"another principal's":  {dial(t, s, pi.ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}}), false, nil},
		}
		c := dial(t, s, pi.ConnOptions{Lifecycle: pi.LifecycleOwn})
		c.ok(`{"id":"1","type":"create_session","sessionId":"s"}`)
		for name, o := range clients {
			if o.reads {
				o.ok(`{"id":"join ` + name + `","type":"switch_session","sessionId":"s"}`)
			}
		}
		c.ok(`{"id":"2","type":"set_session_name","sessionId":"s","name":"n"}`)
		c.ok(`{"id":"3","type":"delete_session","sessionId":"s"}`)
		time.Sleep(gatherTime)
		synctest.Wait()
		for name, o := range clients {
			var got []string
			for _, phase := range phasesOf(o.testClient) {
				if !strings.Contains(phase, " join ") {
					got = append(got, phase)
				}
			}
			if d := cmp.Diff(o.want, got); d != "" {
				t.Errorf("%s: lifecycle events of others (-want +got):\n%s", name, d)
			}
			if own := o.count("command_", `"commandId":"join `+name+`"`); o.reads && own != 3 {
				t.Errorf("%s: got %d lifecycle events of its own command, want 3", name, own)
			}
			if got := o.count(`"session_deleted"`); got != 1 && name != "another principal's" {
				t.Errorf("%s: got %d events that the session was deleted, want one", name, got)
			}
		}
		if d := cmp.Diff(append(first, "accepted 3", "started 3", "finished 3"), phasesOf(c)); d != "" {
			t.Errorf("lifecycle events of its own (-want +got):\n%s", d)
		}
	})
}

func TestAnUnknownLifecycleParameterIsRefused(t *testing.T) {
	if _, err := pi.ParseLifecycle("mine"); err == nil || !strings.Contains(core.AsFault(err).Message, `"mine" is not known: ask for all, session or own`) {
		t.Errorf("got %v, want an error with the valid values", err)
	}
}

func TestTheLifecycleEventsOfOthersAreEncodedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{})
		var transports []*sentFrames
		var clients []*testClient
		for range 3 {
			hubs, ends := coretest.Pipe[[]byte, []byte](8)
			transports = append(transports, &sentFrames{Conn: hubs})
			clients = append(clients, dialOver(t, s, pi.ConnOptions{}, transports[len(transports)-1], ends))
		}
		clients[0].ok(`{"id":"1","type":"list_sessions"}`)
		time.Sleep(gatherTime)
		synctest.Wait()
		want := transports[0].phases
		if len(want) != 3 {
			t.Fatalf("got %d lifecycle events, want 3", len(want))
		}
		for i, other := range transports[1:] {
			if got := other.phases; !slices.Equal(got, want) {
				t.Errorf("client %d: got frames at %v, want those of the first at %v", i+2, got, want)
			}
		}
	})
}

// sentFrames is a transport that records the addresses of the lifecycle events it sends.
type sentFrames struct {
	link.Conn[[]byte, []byte]
	phases []*byte
}

func (c *sentFrames) Send(ctx context.Context, m []byte) error {
	if bytes.HasPrefix(m, []byte(`{"type":"command_`)) {
		c.phases = append(c.phases, &m[0])
	}
	return c.Conn.Send(ctx, m)
}

func TestTheLifecycleEventsOfOthersAreBatched(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{})
		c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
		began := time.Now()
		for i := range 5 {
			c.ok(fmt.Sprintf(`{"id":"%d","type":"list_sessions"}`, i))
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 || len(phasesOf(c)) != 15 {
			t.Errorf("got %d lifecycle events at their own client within %v, want 15 at once", len(phasesOf(c)), took)
		}
		if got := phasesOf(other); len(got) != 0 {
			t.Errorf("got %d at another client at once, want them delayed", len(got))
		}
		time.Sleep(gatherTime)
		synctest.Wait()
		if d := cmp.Diff(phasesOf(c), phasesOf(other)); d != "" {
			t.Errorf("lifecycle events of another client after %v (-own +other):\n%s", gatherTime, d)
		}
		c.ok(`{"id":"last","type":"list_sessions"}`)
		other.ok(`{"id":"mine","type":"list_sessions"}`)
		synctest.Wait()
		last := phasesOf(other)
		want := []string{"accepted last", "started last", "finished last", "accepted mine", "started mine", "finished mine"}
		if d := cmp.Diff(want, last[len(last)-6:]); d != "" {
			t.Errorf("before its own (-want +got):\n%s", d)
		}
	})
}

func TestABatchOfLifecycleEventsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newServer(t, pi.Options{GatherTime: time.Hour})
		c, other := dial(t, s, pi.ConnOptions{}), dial(t, s, pi.ConnOptions{})
		sent := 0
		for i := 0; sent < 4*gatherBytes; i++ {
			c.ok(fmt.Sprintf(`{"id":"%d","type":"list_sessions"}`, i))
			synctest.Wait()
			received := 0
			sent = 0
			for _, f := range c.received() {
				if strings.HasPrefix(f.Type, "command_") {
					sent += itemBytes + len(f.Raw)
				}
			}
			for _, f := range other.received() {
				if strings.HasPrefix(f.Type, "command_") {
					received += itemBytes + len(f.Raw)
				}
			}
			if sent-received > gatherBytes {
				t.Fatalf("got %d bytes gathered and not sent, want at most %d", sent-received, gatherBytes)
			}
		}
	})
}
