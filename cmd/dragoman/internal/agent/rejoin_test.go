package agent

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
)

func TestAnAgentThatNobodyTakesInGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		err := joinInTime(t.Context(), func(ctx context.Context, _ func()) error {
			<-ctx.Done()
			return errors.New("what came of that")
		}, func() {})
		if err == nil || !errors.Is(err, client.ErrNotTakenIn) || time.Since(began) != client.ResponseTimeout {
			t.Errorf("got %v after %v, want it given up after %v", err, time.Since(began), client.ResponseTimeout)
		}
		joined := false
		err = joinInTime(t.Context(), func(ctx context.Context, in func()) error {
			in()
			select {
			case <-ctx.Done():
			case <-time.After(time.Hour):
			}
			return lost
		}, func() { joined = true })
		if !joined || !errors.Is(err, lost) {
			t.Errorf("once it is in: got joined %v and %v, want it to stay until %v", joined, err, lost)
		}
	})
}

func TestWhoComesBackSaysWhyHeLeft(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{{nil, `reason="the hub closed it normally"`}, {lost, `reason="peer gone: the connection was lost"`}} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			var log bytes.Buffer
			_ = Stay(ctx, slog.New(slog.NewTextHandler(&log, nil)), 0, func(_ context.Context, joined func()) error {
				joined()
				return tt.err
			})
			if !strings.Contains(log.String(), tt.want) {
				t.Errorf("got the log %q, want %s in it", log.String(), tt.want)
			}
		})
	}
}
