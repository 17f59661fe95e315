package agent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestAnAgentThatIsNotAcceptedGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := agent.Stay(t.Context(), slog.New(slog.DiscardHandler), 0, func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return errors.New("another error")
		})
		if !errors.Is(err, client.ErrNotAccepted) || time.Since(began) != client.ResponseTimeout {
			t.Errorf("got %v after %v, want %v after %v", err, time.Since(began), client.ErrNotAccepted, client.ResponseTimeout)
		}
	})
}

func TestAnAgentThatIsAcceptedStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		began, ended := time.Now(), time.Time{}
		err := agent.Stay(ctx, slog.New(slog.DiscardHandler), 0, func(ctx context.Context, joined func()) error {
			joined()
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			if ended.IsZero() {
				ended = time.Now()
			}
			return lost
		})
		if err != nil || ended.Sub(began) != time.Hour {
			t.Errorf("got %v and the end after %v, want no error and an hour", err, ended.Sub(began))
		}
	})
}

func TestAnAgentComesBackToAHubThatWasDrained(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		joins := 0
		err := agent.Stay(ctx, slog.New(slog.DiscardHandler), 0, func(ctx context.Context, joined func()) error {
			switch joins++; joins {
			case 1: // it is drained while the agent is there
				joined()
				return core.NewFault(core.CodeUnreachable, "the hub was drained: try again once it is back")
			case 2:
				return core.NewFault(core.CodeUnreachable, "the hub is stopping (an operator drains it): try again once it is back")
			}
			joined()
			<-ctx.Done()
			return nil
		})
		if err != nil || joins != 3 {
			t.Errorf("got %v and %d tries to join, want no error and 3", err, joins)
		}
	})
}

func TestALostConnectionIsLoggedWithItsReason(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{{nil, `reason="the hub closed it normally"`}, {lost, `reason="peer gone: the connection was lost"`}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var log bytes.Buffer
			_ = agent.Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 0, func(_ context.Context, joined func()) error {
				joined()
				return tt.err
			})
			if !strings.Contains(log.String(), tt.want) {
				t.Errorf("got the log %q, want %s in it", log.String(), tt.want)
			}
		})
	}
}

func TestAFailedRejoinIsNotLoggedAsALostConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var log bytes.Buffer
		tries := 0
		_ = agent.Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 0, func(_ context.Context, joined func()) error {
			if tries++; tries == 1 {
				joined()
			}
			return lost
		})
		if n := strings.Count(log.String(), "the connection has ended"); n != 1 || !strings.Contains(log.String(), `msg="joining failed: trying again"`) {
			t.Errorf("got the log %q, want one connection that ended, and joins that failed", log.String())
		}
		for field := range strings.FieldsSeq(log.String()) {
			if in, ok := strings.CutPrefix(field, "in="); ok {
				if d, err := time.ParseDuration(in); err != nil || d != d.Round(time.Millisecond) {
					t.Errorf("got %s, want whole milliseconds", field)
				}
			}
		}
	})
}

func TestAnAgentGoesToTheNextHub(t *testing.T) {
	drained := core.NewFault(core.CodeUnreachable, "the hub was drained: try again once it is back")
	for name, first := range map[string]func(ctx context.Context, n int, joined func()) error{
		"where the first one does not answer": func(ctx context.Context, _ int, _ func()) error { <-ctx.Done(); return ctx.Err() },
		"where the first one is drained":      func(context.Context, int, func()) error { return drained },
		"after the first one was drained": func(_ context.Context, n int, joined func()) error {
			if n == 1 {
				joined()
			}
			return drained
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				tries, began := 0, time.Now()
				err := agent.Stay(ctx, slog.New(slog.DiscardHandler), 0, func(ctx context.Context, joined func()) error {
					tries++
					return first(ctx, tries, joined)
				}, func(_ context.Context, joined func()) error {
					joined()
					cancel()
					return nil
				})
				if took := time.Since(began); err != nil || tries != 1 || took > client.ResponseTimeout {
					t.Errorf("got %v after %d tries at the first hub and %s, want it at the second one", err, tries, took)
				}
			})
		})
	}
}

func TestAnAgentThatAHubRefusesTriesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := agent.Stay(t.Context(), slog.New(slog.DiscardHandler), 0, func(context.Context, func()) error {
			return core.NewFault(core.CodeUnauthenticated, "the hub does not know the token")
		}, func(context.Context, func()) error {
			t.Error("the second hub was tried, want it left alone")
			return nil
		})
		if err == nil || err.Error() != "the hub does not know the token" {
			t.Errorf("got %v, want why the first hub refused it", err)
		}
	})
}

// While no hub is there, an agent that waits says so once, then after pauses that grow, and again at once after it was in.
func TestAnAgentThatWaitsForAHubSaysSoSeldom(t *testing.T) {
	away := func(context.Context, func()) error { return client.ErrNotAccepted }
	absent := func(func()) error { return client.ErrNotAccepted }
	for name, tt := range map[string]struct {
		first func(joined func()) error
		lasts time.Duration
		want  map[string]int
	}{
		"before it has joined":  {absent, 2 * time.Hour, map[string]int{"waiting for a hub": 1, "going to the next hub": 8}},
		"after it was there":    {func(joined func()) error { joined(); return lost }, 2 * time.Hour, map[string]int{"the connection has ended": 1, "going to the next hub": 8, "joining failed": 8}},
		"for less than a while": {absent, 50 * time.Second, map[string]int{"waiting for a hub": 1, "going to the next hub": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), tt.lasts)
				defer cancel()
				var log bytes.Buffer
				tries := 0
				_ = agent.Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 24*time.Hour, func(_ context.Context, joined func()) error {
					if tries++; tries == 1 {
						return tt.first(joined)
					}
					return client.ErrNotAccepted
				}, away)
				for text, want := range tt.want {
					if got := strings.Count(log.String(), text); got != want {
						t.Errorf("got %q %d times in %s, want it %d times:\n%s", text, got, tt.lasts, want, log.String())
					}
				}
				if tt.want["waiting for a hub"] > 0 && !strings.Contains(log.String(), "for=1d ") {
					t.Errorf("got %s, want for how long it waits: 1d", log.String())
				}
				if tt.lasts > time.Hour && !strings.Contains(log.String(), "repeated=") {
					t.Errorf("got %s, want how often a message was left out", log.String())
				}
			})
		})
	}
}
