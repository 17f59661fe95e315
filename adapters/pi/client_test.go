package pi_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// The requirements for clients (section 13) that package client meets.
func TestTheClientMeetsTheRequirementsForClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, s := newServer(t, pi.Options{})
		joinAgent(t, h, core.Card{ID: "mute"}, func(*testAgent, hub.Batch) {})
		ann := pi.ConnOptions{Principal: core.Principal{ID: "ann", Authenticated: true}}
		one, two := dial(t, s, ann), dial(t, s, ann)
		seen := map[string]bool{}
		create := map[string]any{"type": "create_session", "sessionId": "s", "agent": "mute", "idempotencyKey": "k"}
		for i, c := range []*testClient{one, two, one} { // 1 to 3: an id for each intent, over all connections
			f, err := c.Do(context.Background(), create)
			if err != nil {
				t.Fatal(err)
			}
			if seen[string(f.ID)] || f.Replayed != (i > 0) || f.SessionVersion == nil || *f.SessionVersion != 0 {
				t.Errorf("response %d: got %s, want a new id, the version, and replayed after the first", i, f.Raw)
			}
			seen[string(f.ID)] = true
		}
		if _, named := create["id"]; named {
			t.Error("the command of the caller was given the id: it would be used twice")
		}
		if f := one.doUnlimited(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`); !f.TimedOut || f.Replayed { // 8
			t.Errorf("got %s, want a timeout", f.Raw)
		}
		time.Sleep(time.Hour)
		if f := two.doUnlimited(`{"id":"p","type":"prompt","sessionId":"s","message":"x"}`); !f.TimedOut || !f.Replayed {
			t.Errorf("got %s, want the same timeout", f.Raw)
		}
		if f := two.do(`{"id":"p","type":"abort","sessionId":"s"}`); f.Success || f.Error == "" || f.Replayed { // 4
			t.Errorf("got %s, want a conflict", f.Raw)
		}
	})
}
