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
	// stoppingDelay is the longest for a hub that takes nothing new. It may be back at any moment.
	stoppingDelay = 2 * time.Second
)

// mayCome reports whether an agent that waits for its first hub goes on waiting: it is not there, stops or is drained.
func mayCome(err error) bool { return client.IsNoHub(err) || isStopping(err) }

// isStopping reports whether a hub refuses an agent because it stops or is drained.
func isStopping(err error) bool {
	var refused *core.Fault
	return errors.As(err, &refused) && refused.Code == core.CodeUnreachable
}

// isNormal reports whether the hub has closed the connection normally. One that has not accepted the agent takes
// nothing new: that is all that some dialects say.
func isNormal(err error) bool { return err == nil || errors.Is(err, io.EOF) }

// takesNobody reports whether an agent that could not join may join another hub: this one is not there, or
// refuses everybody.
func takesNobody(err error) bool {
	var refused *core.Fault
	return err != nil && (!errors.As(err, &refused) || refused.Code == core.CodeUnreachable || refused.Code == core.CodeOverloaded)
}

// Stay joins, and joins again with a growing delay when the connection is lost. Only a
// connection that lasted resets the delay, so that a hub that accepts the agent and drops it
// at once is not flooded. While a hub stops or is drained and takes no agent, the delay is up to
// [stoppingDelay] and does not grow. Stay waits up to patience for a hub that is not running yet. It
// returns an error if it never joined, or if the hub refused the agent, unless that hub is drained or
// stops. There is a connect for each hub that the agent may join, one at a time: the next one is tried at
// once where a hub does not answer or takes nothing new, and first after a connection that was lost.
func Stay(ctx context.Context, log *slog.Logger, patience time.Duration, hubs ...func(ctx context.Context, joined func()) error) error {
	in, wait, next := false, minBackoff, 0
	var moves, failures, waits logLimiter // while there is no hub
	retry := client.NewRetry(patience, mayCome, func(err error) {
		log.Info("waiting for a hub", "for", config.FormatTime(patience), "reason", err.Error())
	})
	for {
		var since time.Time
		join := func() (err error) {
			for tried := 1; ; tried++ {
				err = joinInTime(ctx, hubs[next], func() {
					in, since = true, time.Now()
					moves, failures, waits = logLimiter{}, logLimiter{}, logLimiter{}
				})
				next = (next + 1) % len(hubs)
				if ctx.Err() != nil || !since.IsZero() || tried == len(hubs) || !takesNobody(err) {
					return err
				}
				moves.log(log.Info, "going to the next hub", "reason", err.Error())
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
		case in && (client.IsNoHub(err) || isStopping(err)):
			// It is away, or starts; or it stops, or is drained, and will be started again.
		case in && errors.As(err, &refused) && refused.Code == core.CodeConflict:
			// The hub may not have noticed yet that the previous connection is lost.
		case errors.As(err, &refused) && !client.IsNoHub(err):
			return errors.New(refused.Message)
		case !in && !isNormal(err):
			return err
		}
		if !since.IsZero() && time.Since(since) >= maxBackoff {
			wait = minBackoff
		}
		stops, delay := since.IsZero() && (isStopping(err) || isNormal(err)), wait
		if stops {
			delay = stoppingDelay
		} else {
			wait = min(2*wait, maxBackoff)
		}
		pause := delay/2 + rand.N(delay/2)
		reason := "the hub closed it normally"
		if !isNormal(err) {
			reason = err.Error()
		}
		after := pause.Round(time.Millisecond).String()
		switch {
		case !since.IsZero():
			log.Warn("the connection has ended: joining again", "reason", reason, "in", after)
		case stops:
			waits.log(log.Info, "waiting for the hub, which takes nothing new", "reason", reason)
		default:
			failures.log(log.Warn, "joining failed: trying again", "reason", reason, "in", after)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}
