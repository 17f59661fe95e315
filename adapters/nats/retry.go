package nats

import (
	"context"
	"errors"
	"time"

	"github.com/dragoman-hub/dragoman/core/timer"
)

// usualSilence is how long to wait for the leader of a stream before it is asked again, and replicaSilence
// for any of several replicas before another one is. Each time it is twice as long, up to longestSilence. While a
// server is not heard, every second or third request goes to it, and of many at once some do several times: then it is
// unheardSilence at first, half as long again each time, and at most unheardPatience, within which others are elected.
const (
	usualSilence, replicaSilence    = 150 * time.Millisecond, 60 * time.Millisecond
	longestSilence                  = 2 * time.Second
	unheardSilence, unheardPatience = 20 * time.Millisecond, 600 * time.Millisecond
)

// silence returns how long to wait for the answer of a leader at first.
func (j *Journal) silence() time.Duration {
	if j.unheard.any() {
		return unheardSilence
	}
	return usualSilence
}

// replicaSilence is silence for what any replica answers.
func (j *Journal) replicaSilence() time.Duration {
	if j.replicas == 1 {
		return j.silence() // nobody else could answer
	}
	return min(j.silence(), replicaSilence)
}

// longer returns how long to wait for an answer the next time.
func (j *Journal) longer(wait time.Duration) time.Duration {
	if j.unheard.any() {
		return min(3*wait/2, unheardPatience)
	}
	return min(2*wait, longestSilence)
}

// retry calls ask until a server answers, or ctx ends: a request is lost with the server that it went to,
// and the next one may go to another replica or leader. Each call has a context of its own, which ends
// after the time wait at first, and after a longer one each time. In a cluster retry also repeats what cannot be done for a moment. ask may have
// been done although it returned an error.
func retry[T any](ctx context.Context, j *Journal, wait time.Duration, ask func(context.Context) (T, error)) (T, error) {
	for ; ; wait = j.longer(wait) {
		try, stop := context.WithTimeout(ctx, wait)
		answer, err := ask(try)
		stop()
		silent := errors.Is(err, context.DeadlineExceeded)
		if err == nil || ctx.Err() != nil || !silent && !(j.clustered && isTemporary(err)) {
			return answer, err
		}
		if !silent && timer.Sleep(ctx, electTick) != nil {
			return answer, err
		}
	}
}
