package agent

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"math/rand/v2"
	"time"

	acpclient "github.com/dragoman-hub/dragoman/adapters/acp/client"
	parallaxwire "github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// inTime lets connect join within the patience that there is for what should be
// quick: at another door of the hub, or of another server, nobody may ever answer.
func inTime(ctx context.Context, connect func(ctx context.Context, joined func()) error, joined func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(client.Patience, func() { cancel(client.ErrNotTakenIn) })
	defer timer.Stop()
	err := connect(ctx, func() {
		timer.Stop()
		joined()
	})
	if errors.Is(context.Cause(ctx), client.ErrNotTakenIn) {
		return client.ErrNotTakenIn
	}
	return err
}

// The pace at which an agent comes back after its connection was lost.
const (
	backoffLeast = time.Second
	backoffMost  = 30 * time.Second
)

// Stay joins, and joins again when the connection is lost, at a growing pace. Only a
// connection that held begins the pace anew: a hub that takes the agent in and drops
// it at once is not run down. It waits up to patience for a hub that is not there yet.
// It returns an error when it never got in, or when the hub turned it away.
func Stay(ctx context.Context, log *slog.Logger, patience time.Duration, connect func(ctx context.Context, joined func()) error) error {
	in, wait := false, backoffLeast
	arrival := client.NewRetry(patience, client.IsNoHub, func(err error) {
		log.Info("waiting for a hub", "for", patience.String(), "reason", err.Error())
	})
	for {
		var since time.Time
		join := func() error { return inTime(ctx, connect, func() { in, since = true, time.Now() }) }
		var err error
		if in {
			err = join()
		} else {
			err = arrival.Do(ctx, join)
		}
		var turned *core.Fault
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &turned) && (turned.Peer == parallaxwire.Replaced || turned.Peer == acpclient.Replaced):
			return errors.New(turned.Message)
		case in && errors.As(err, &turned) && turned.Code == core.CodeConflict:
			// The hub may not know yet that the connection before is lost.
		case errors.As(err, &turned):
			return errors.New(turned.Message)
		case !in && err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if !since.IsZero() && time.Since(since) >= backoffMost {
			wait = backoffLeast
		}
		pause := wait/2 + rand.N(wait/2)
		reason := "the hub ended it in good order"
		if err != nil {
			reason = err.Error()
		}
		log.Warn("the connection has ended: joining again", "reason", reason, "in", pause.String())
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, backoffMost)
	}
}
