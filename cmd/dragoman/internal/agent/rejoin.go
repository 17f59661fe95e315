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
	// stoppingDelay is the longest for a hub that stops, or takes nothing new. It may be back at any moment.
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
// connection that lasted longer than the delay resets it, so that a hub that accepts the agent and drops it
// at once is not flooded. After a hub that stopped, and while one stops or is drained and takes no agent, the
// delay is up to [stoppingDelay] and does not grow. Stay waits up to patience for a hub that is not running yet. It
// returns an error if it never joined, or if the hub refused the agent, unless that hub is drained or
// stops. There is a connect for each hub that the agent may join, one at a time: the next one is tried at
// once where a hub does not answer or takes nothing new, and first after a connection that was lost.
func Stay(ctx context.Context, log *slog.Logger, patience time.Duration, hubs ...func(ctx context.Context, joined func()) error) error {
	s := &stay{log: log, hubs: hubs, wait: minBackoff}
	retry := client.NewRetry(patience, func(err error) bool { return !s.in && mayCome(err) }, func(err error) {
		log.Info("waiting for a hub", "for", config.FormatTime(patience), "reason", err.Error())
	})
	for {
		s.since = time.Time{}
		var err error
		if s.in {
			err = s.join(ctx)
		} else {
			err = retry.Do(ctx, func() error { return s.join(ctx) })
		}
		if ctx.Err() != nil {
			return nil
		}
		if final := s.final(err); final != nil {
			return final
		}
		pause := s.pause(err)
		s.tell(err, pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil
		}
	}
}

// A stay is what [Stay] knows from one connection to the next.
type stay struct {
	log   *slog.Logger
	hubs  []func(ctx context.Context, joined func()) error
	next  int           // the one that is tried next
	in    bool          // it has joined at least once
	since time.Time     // when the latest connection joined; zero if it did not
	wait  time.Duration // before the next connection

	moves, failures, waits logLimiter // while there is no hub
}

// join joins the first hub that takes the agent, and returns how that connection has ended, or why there is none.
func (s *stay) join(ctx context.Context) (err error) {
	for tried := 1; ; tried++ {
		err = joinInTime(ctx, s.hubs[s.next], func() {
			s.in, s.since = true, time.Now()
			s.moves, s.failures, s.waits = logLimiter{}, logLimiter{}, logLimiter{}
		})
		s.next = (s.next + 1) % len(s.hubs)
		if ctx.Err() != nil || !s.since.IsZero() || tried == len(s.hubs) || !takesNobody(err) {
			return err
		}
		s.moves.log(s.log.Info, "going to the next hub", "reason", err.Error())
	}
}

// final returns the error to end with after a connection that ended with err, nil to join again.
func (s *stay) final(err error) error {
	var refused *core.Fault
	isRefused := errors.As(err, &refused)
	switch {
	case isRefused && (refused.PeerCode == parallaxwire.Replaced || refused.PeerCode == acpclient.Replaced):
		return errors.New(refused.Message)
	case s.in && (client.IsNoHub(err) || isStopping(err)):
		return nil // it is away, or starts; or it stops, or is drained, and will be started again
	case s.in && isRefused && (refused.Code == core.CodeConflict || refused.Code == core.CodeOverloaded):
		return nil // the hub may not have noticed yet that the previous connection is lost, or has no room now
	case isRefused && !client.IsNoHub(err):
		return errors.New(refused.Message)
	case !s.in && !isNormal(err):
		return err
	}
	return nil
}

// pause returns how long to wait before the next connection.
func (s *stay) pause(err error) time.Duration {
	lasted := !s.since.IsZero() && time.Since(s.since) >= s.wait
	if lasted {
		s.wait = minBackoff
	}
	delay := s.wait
	if stops(err) && !lasted {
		delay = stoppingDelay
	} else {
		s.wait = min(2*s.wait, maxBackoff)
	}
	return delay/2 + rand.N(delay/2)
}

// stops reports whether the hub has closed the connection, or refused the agent, because it stops or is drained.
func stops(err error) bool { return isStopping(err) || isNormal(err) }

// tell logs why there is no connection now.
func (s *stay) tell(err error, pause time.Duration) {
	reason := "the hub closed it normally"
	if !isNormal(err) {
		reason = err.Error()
	}
	after := pause.Round(time.Millisecond).String()
	switch {
	case !s.since.IsZero():
		s.log.Warn("the connection has ended: joining again", "reason", reason, "in", after)
	case stops(err):
		s.waits.log(s.log.Info, "waiting for the hub, which takes nothing new", "reason", reason)
	default:
		s.failures.log(s.log.Warn, "joining failed: trying again", "reason", reason, "in", after)
	}
}
