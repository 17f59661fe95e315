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
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// joinInTime limits the time that connect takes to join: another listener of the hub, or
// another server, may never answer.
func joinInTime(ctx context.Context, connect func(ctx context.Context, joined func()) error, joined func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(client.ResponseTimeout, func() { cancel(client.ErrNotAccepted) })
	defer timer.Stop()
	err := connect(ctx, func() {
		timer.Stop()
		joined()
	})
	if errors.Is(context.Cause(ctx), client.ErrNotAccepted) {
		return client.ErrNotAccepted
	}
	return err
}

// The delay before an agent reconnects.
const (
	minBackoff = time.Second
	maxBackoff = 30 * time.Second
)

// mayCome reports whether an agent that waits for its first hub goes on waiting: it is not there, stops or is drained.
func mayCome(err error) bool {
	var refused *core.Fault
	return client.IsNoHub(err) || errors.As(err, &refused) && refused.Code == core.CodeUnreachable
}

// takesNobody reports whether an agent that could not join may join another hub: this one is not there, or
// refuses everybody.
func takesNobody(err error) bool {
	var refused *core.Fault
	return err != nil && (!errors.As(err, &refused) || refused.Code == core.CodeUnreachable || refused.Code == core.CodeOverloaded)
}

// Stay joins, and joins again with a growing delay when the connection is lost. Only a
// connection that lasted resets the delay, so that a hub that accepts the agent and drops it
// at once is not flooded. Stay waits up to patience for a hub that is not running yet. It
// returns an error if it never joined, or if the hub refused the agent, unless that hub is drained or
// stops. There is a connect for each hub that the agent may join, one at a time: the next one is tried at
// once where a hub does not answer or takes nothing new, and first after a connection that was lost.
func Stay(ctx context.Context, log *slog.Logger, patience time.Duration, hubs ...func(ctx context.Context, joined func()) error) error {
	in, wait, next := false, minBackoff, 0
	var moves, failures logLimiter // while there is no hub
	retry := client.NewRetry(patience, mayCome, func(err error) {
		log.Info("waiting for a hub", "for", config.FormatTime(patience), "reason", err.Error())
	})
	for {
		var since time.Time
		join := func() (err error) {
			for tried := 1; ; tried++ {
				err = joinInTime(ctx, hubs[next], func() { in, since, moves, failures = true, time.Now(), logLimiter{}, logLimiter{} })
				next = (next + 1) % len(hubs)
				if ctx.Err() != nil || !since.IsZero() || tried == len(hubs) || !takesNobody(err) {
					return err
				}
				if ok, suppressed := moves.allow(); ok {
					log.Info("going to the next hub", append(repeated(suppressed), "reason", err.Error())...)
				}
			}
		}
		var err error
		if in {
			err = join()
		} else {
			err = retry.Do(ctx, join)
		}
		var refused *core.Fault
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.As(err, &refused) && (refused.PeerCode == parallaxwire.Replaced || refused.PeerCode == acpclient.Replaced):
			return errors.New(refused.Message)
		case in && client.IsNoHub(err):
			// It is away, or starts.
		case in && errors.As(err, &refused) && refused.Code == core.CodeConflict:
			// The hub may not have noticed yet that the previous connection is lost.
		case in && errors.As(err, &refused) && refused.Code == core.CodeUnreachable:
			// The hub is drained, or stops, and will be started again.
		case errors.As(err, &refused):
			return errors.New(refused.Message)
		case !in && err != nil && !errors.Is(err, io.EOF):
			return err
		}
		if !since.IsZero() && time.Since(since) >= maxBackoff {
			wait = minBackoff
		}
		pause := wait/2 + rand.N(wait/2)
		reason := "the hub closed it normally"
		if err != nil {
			reason = err.Error()
		}
		after := pause.Round(time.Millisecond).String()
		if !since.IsZero() {
			log.Warn("the connection has ended: joining again", "reason", reason, "in", after)
		} else if ok, suppressed := failures.allow(); ok {
			log.Warn("joining failed: trying again", append(repeated(suppressed), "reason", reason, "in", after)...)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
		wait = min(2*wait, maxBackoff)
	}
}

// repeated is the field of a message that says how often it was suppressed before; none for never.
func repeated(suppressed int) []any {
	if suppressed == 0 {
		return nil
	}
	return []any{"repeated", suppressed}
}
