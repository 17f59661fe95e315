package parallax

import (
	"context"

	"golang.org/x/time/rate"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
)

// pace bounds how fast an agent is read. Nothing is refused: what the agent sends
// faster waits in its own connection. It is of the reader loop alone.
type pace struct {
	limiter *rate.Limiter // nil for no limit
	told    bool
}

func newPace(perSecond int) *pace {
	if perSecond < 0 {
		return &pace{}
	}
	return &pace{limiter: rate.NewLimiter(rate.Limit(perSecond), perSecond)}
}

// wait returns when the next message may be acted on. The agent is told once
// each time that it begins to be too fast.
func (p *pace) wait(ctx context.Context, s *session) error {
	if p.limiter == nil {
		return nil
	}
	delay := p.limiter.Reserve().Delay()
	if delay <= 0 {
		p.told = false
		return nil
	}
	if !p.told {
		p.told = true
		if err := s.refuse(ctx, "", wire.CodeRateLimited, "more messages a second than the limit: they are taken in turn and none is lost, but later; send fewer"); err != nil {
			return err
		}
	}
	return pause(ctx, delay)
}
