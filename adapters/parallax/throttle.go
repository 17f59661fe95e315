package parallax

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
	"github.com/dragoman-hub/dragoman/core/timer"
)

// throttle limits how fast an agent's messages are read. It refuses none: those that come
// faster wait in the agent's connection. Only the reader loop uses it.
type throttle struct {
	limiter *rate.Limiter // nil for no limit
	warned  bool
}

func newThrottle(perSecond int) *throttle {
	if perSecond < 0 {
		return &throttle{}
	}
	return &throttle{limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// wait returns when the next message may be handled. The agent is warned once each time
// that it exceeds the limit.
func (t *throttle) wait(ctx context.Context, s *session) error {
	if t.limiter == nil {
		return nil
	}
	delay := t.limiter.Reserve().Delay()
	if delay <= 0 {
		t.warned = false
		return nil
	}
	if !t.warned {
		t.warned = true
		if err := s.refuse(ctx, "", wire.CodeRateLimited, "more messages a second than the limit: they are taken in turn and none is lost, but later; send fewer"); err != nil {
			return err
		}
	}
	return timer.Sleep(ctx, delay)
}
