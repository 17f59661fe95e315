package nats_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
)

func TestAWaitSaysWhoIsThere(t *testing.T) {
	for _, tt := range []struct {
		wait nats.Wait
		want string
	}{
		{nats.Wait{Here: 1, Of: 3, Needed: 2, Absent: "it has not heard b, c"}, "waiting for a majority: 1 of 3 hubs is here, 2 are needed; it has not heard b, c"},
		{nats.Wait{Here: 2, Of: 5, Needed: 3}, "waiting for a majority: 2 of 5 hubs are here, 3 are needed"},
		{nats.Wait{Here: 2, Of: 3, Needed: 3, First: true}, "waiting for the first start of a cluster: 2 of 3 hubs are here, 3 are needed"},
		{nats.Wait{Here: 3, Of: 3, Needed: 3, First: true}, "waiting for an election, which takes up to 10 s: 3 of 3 hubs are here"},
	} {
		if got := tt.wait.Full(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.wait, got, tt.want)
		}
	}
}

func TestAHubWithoutAMajorityTellsAtOnceWhatItWaitsFor(t *testing.T) {
	at := addresses(t, 3)
	o := member(t.TempDir(), "a", "open sesame", at, 0)
	ctx, cancel := context.WithCancelCause(t.Context())
	told := errors.New("it has told")
	o.Waiting = func(w nats.Wait) {
		want := "waiting for the first start of a cluster: 1 of 3 hubs is here, 3 are needed; it has heard nobody at " + at[1] + ", " + at[2]
		if got := w.Full(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		cancel(told)
	}
	begin := time.Now()
	if _, err := nats.Open(ctx, o); !errors.Is(err, told) || !strings.Contains(err.Error(), "waiting for a majority") {
		t.Errorf("got %v after %s, want it to wait until it has told", err, time.Since(begin))
	}
}
