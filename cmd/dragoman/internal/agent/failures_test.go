package agent_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// The range of the delay before an agent reconnects.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

var lost = &link.Reason{Cause: link.PeerGone, Text: "the connection was lost"}

// connections runs Stay for an hour of fake time and returns when each connection began.
func connections(t *testing.T, connect func(n int, joined func()) error) (began []time.Time, err error) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		err = agent.Stay(ctx, slog.New(slog.DiscardHandler), 0, func(_ context.Context, joined func()) error {
			began = append(began, time.Now())
			return connect(len(began), joined)
		})
	})
	return began, err
}

// Half of each pause is left to chance, so that agents that a hub has lost together do not come back together.
func TestThePauseBeforeReconnectingDoublesFromOneSecondToThirty(t *testing.T) {
	began, err := connections(t, func(_ int, joined func()) error {
		joined()
		return lost
	})
	if err != nil {
		t.Errorf("got %v, want none", err)
	}
	const grown = 5 // attempts until the pause has reached its maximum
	if len(began) <= grown {
		t.Fatalf("got %d connections in an hour, want more than %d", len(began), grown)
	}
	for attempt := range len(began) - 1 {
		want := maxBackoff
		if attempt < grown {
			want = minBackoff << attempt
		}
		if pause := began[attempt+1].Sub(began[attempt]); pause < want/2 || pause > want {
			t.Errorf("got a pause of %v before attempt %d, want %v to %v", pause, attempt, want/2, want)
		}
	}
}

func TestALongConnectionResetsTheBackoff(t *testing.T) {
	began, err := connections(t, func(n int, joined func()) error {
		joined()
		if n == 20 {
			<-time.After(maxBackoff)
		}
		return lost
	})
	if err != nil || len(began) < 21 {
		t.Fatalf("got %d connections and %v, want more than 20", len(began), err)
	}
	if pause := began[20].Sub(began[19].Add(maxBackoff)); pause > minBackoff {
		t.Errorf("got a pause of %v after a connection that lasted, want at most %v", pause, minBackoff)
	}
}

func TestAnAgentReconnectsWhileTheHubStillHoldsItsLostConnection(t *testing.T) {
	taken, full := core.NewFault(core.CodeConflict, "agent a already registered"), core.NewFault(core.CodeOverloaded, "a has 1 connections, which is the limit")
	began, err := connections(t, func(n int, joined func()) error {
		switch n {
		case 1, 5:
			joined()
			return lost
		case 3:
			return full
		case 6:
			return core.NewFault(core.CodeNotAuthorized, "a may not join")
		}
		return taken // until the hub notices that the first is lost
	})
	if len(began) != 6 || err == nil || err.Error() != "a may not join" {
		t.Errorf("got %d connections and %v, want 6 and the refusal of the last", len(began), err)
	}
	if began, err = connections(t, func(int, func()) error { return taken }); len(began) != 1 || err == nil {
		t.Errorf("an id that is taken: got %d connections and %v, want one and an error", len(began), err)
	}
	refused := errors.New("connection refused")
	if began, err = connections(t, func(int, func()) error { return refused }); len(began) != 1 || !errors.Is(err, refused) {
		t.Errorf("no hub from the start: got %d connections and %v, want one and %v", len(began), err, refused)
	}
}
