package pi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
)

// phasesOf are the lifecycle events that a client was told, in order.
func phasesOf(c *caller) []string {
	var all []string
	for _, f := range c.seen() {
		if phase, ok := strings.CutPrefix(f.Type, "command_"); ok {
			_, id, _ := strings.Cut(string(f.Raw), `"commandId":"`)
			id, _, _ = strings.Cut(id, `"`)
			all = append(all, phase+" "+id)
		}
	}
	return all
}

func TestAClientIsToldOfTheCommandsThatItAsksFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStage(t, Options{})
		first := []string{"accepted 1", "started 1", "finished 1", "accepted 2", "started 2", "finished 2"}
		clients := map[string]struct {
			*caller
			reads bool
			want  []string
		}{
			"all":                  {dial(t, s, ConnOptions{}), false, append(first, "accepted 3", "started 3", "finished 3")},
			"session":              {dial(t, s, ConnOptions{Lifecycle: LifecycleSession}), true, []string{"accepted 2", "started 2", "finished 2", "accepted 3", "started 3", "finished 3"}},
			"session of no reader": {dial(t, s, ConnOptions{Lifecycle: LifecycleSession}), false, nil},
			"own":                  {dial(t, s, ConnOptions{Lifecycle: LifecycleOwn}), true, nil},
			"another principal's":  {dial(t, s, ConnOptions{Principal: core.Principal{ID: "bob", Authenticated: true}}), false, nil},
		}
		c := dial(t, s, ConnOptions{Lifecycle: LifecycleOwn})
		c.ok(`{"id":"1","type":"create_session","sessionId":"s"}`)
		for name, o := range clients {
			if o.reads {
				o.ok(`{"id":"join ` + name + `","type":"switch_session","sessionId":"s"}`)
			}
		}
		c.ok(`{"id":"2","type":"set_session_name","sessionId":"s","name":"n"}`)
		c.ok(`{"id":"3","type":"delete_session","sessionId":"s"}`)
		time.Sleep(s.opts.GatherTime)
		synctest.Wait()
		for name, o := range clients {
			var got []string
			for _, phase := range phasesOf(o.caller) {
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
				t.Errorf("%s: got %d times that the session was deleted, want once", name, got)
			}
		}
		if d := cmp.Diff(append(first, "accepted 3", "started 3", "finished 3"), phasesOf(c)); d != "" {
			t.Errorf("lifecycle events of its own (-want +got):\n%s", d)
		}
	})
}

func TestAnAddressThatAsksForUnknownLifecycleEventsIsRefused(t *testing.T) {
	if _, err := ParseLifecycle("mine"); err == nil || !strings.Contains(core.AsFault(err).Message, `"mine" is not known: ask for all, session or own`) {
		t.Errorf("got %v, want what to write", err)
	}
}

func TestTheLifecycleEventsOfOthersAreEncodedOnce(t *testing.T) {
	_, s := newStage(t, Options{})
	var clients []*connection // whose outboxes nobody empties
	for range 3 {
		c := s.newConnection(ConnOptions{})
		defer c.hub.Close(nil)
		s.attach(c)
		defer s.detach(c)
		clients = append(clients, c)
	}
	cmd, err := command.Decode([]byte(`{"id":"1","type":"list_sessions"}`), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	clients[0].submit(cmd)
	phases := func(c *connection) (frames []*byte) {
		for _, it := range c.out.take(nil) {
			if strings.HasPrefix(string(it.frame), `{"type":"command_`) {
				frames = append(frames, &it.frame[0])
			}
		}
		return frames
	}
	want := phases(clients[0])
	if len(want) != 3 {
		t.Fatalf("got %d lifecycle events, want 3", len(want))
	}
	for i, c := range clients[1:] {
		if got := phases(c); !slices.Equal(got, want) {
			t.Errorf("client %d: got frames at %v, want those of the first at %v", i+2, got, want)
		}
	}
}

func TestTheLifecycleEventsOfOthersAreGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStage(t, Options{})
		c, other := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
		began := time.Now()
		for i := range 5 {
			c.ok(fmt.Sprintf(`{"id":"%d","type":"list_sessions"}`, i))
		}
		synctest.Wait()
		if took := time.Since(began); took != 0 || len(phasesOf(c)) != 15 {
			t.Errorf("got %d lifecycle events told to their own client within %v, want 15 at once", len(phasesOf(c)), took)
		}
		if got := phasesOf(other); len(got) != 0 {
			t.Errorf("got %d told to another at once, want them to wait", len(got))
		}
		time.Sleep(s.opts.GatherTime)
		synctest.Wait()
		if d := cmp.Diff(phasesOf(c), phasesOf(other)); d != "" {
			t.Errorf("told to another after %v (-own +other):\n%s", s.opts.GatherTime, d)
		}
		c.ok(`{"id":"last","type":"list_sessions"}`)
		other.ok(`{"id":"mine","type":"list_sessions"}`)
		synctest.Wait()
		last := phasesOf(other)
		want := []string{"accepted last", "started last", "finished last", "accepted mine", "started mine", "finished mine"}
		if d := cmp.Diff(want, last[len(last)-6:]); d != "" {
			t.Errorf("told before its own (-want +got):\n%s", d)
		}
	})
}

func TestNotMoreLifecycleEventsAreGatheredThanTheirBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, s := newStage(t, Options{GatherTime: time.Hour})
		c, other := dial(t, s, ConnOptions{}), dial(t, s, ConnOptions{})
		sent := 0
		for i := 0; sent < 4*gatherBytes; i++ {
			c.ok(fmt.Sprintf(`{"id":"%d","type":"list_sessions"}`, i))
			synctest.Wait()
			heard := 0
			sent = 0
			for _, f := range c.seen() {
				if strings.HasPrefix(f.Type, "command_") {
					sent += itemBytes + len(f.Raw)
				}
			}
			for _, f := range other.seen() {
				if strings.HasPrefix(f.Type, "command_") {
					heard += itemBytes + len(f.Raw)
				}
			}
			if sent-heard > gatherBytes {
				t.Fatalf("got %d bytes gathered and not told, want %d at most", sent-heard, gatherBytes)
			}
		}
	})
}
