package e2e

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

const (
	burstSaid    = 2000             // the chunks of an answer of a burst
	burstReturns = 30 * time.Second // in which the memory of a burst is to be returned
	burstNear    = 1.2              // of what it was before
	burstKept    = 32 * mebi        // beside that: the turns of its conversations, and what is too little to be returned at once
)

// burstAsked is how many of them are asked for at once.
func burstAsked() int {
	if *soakHours > 0 {
		return 64
	}
	return 8
}

func soakBurstChunk(i int) string { return fmt.Sprintf("%05d %s\n", i, strings.Repeat("~", 57)) }

func sayBurst(say func(core.Body) error) error {
	for i := range burstSaid {
		if err := say(core.Text{Text: soakBurstChunk(i)}); err != nil {
			return err
		}
	}
	return nil
}

var soakBurstText = sync.OnceValue(func() string {
	var b strings.Builder
	for i := range burstSaid {
		b.WriteString(soakBurstChunk(i))
	}
	return b.String()
})

// bursts has one burst after the other.
func (s *soak) bursts(ctx context.Context, between time.Duration) {
	for pauseFor(ctx, between); ctx.Err() == nil; pauseFor(ctx, between) {
		s.burst(ctx)
	}
}

// burst asks for many long answers at once, and measures how long their memory is kept. Every
// answer has to come whole.
func (s *soak) burst(ctx context.Context) {
	before, err := s.sample()
	if err != nil {
		return
	}
	s.bursting.Store(true)
	defer s.bursting.Store(false)
	began := time.Now()
	s.askBurst(ctx, func(err error) { s.wrong("a burst: %w", err) })
	if ctx.Err() != nil {
		return
	}
	s.count("bursts")
	s.returns(ctx, before.values["rss"], began)
}

// askBurst asks the steady agents for the answers of a burst.
func (s *soak) askBurst(ctx context.Context, wrong func(error)) {
	var asking sync.WaitGroup
	for i := range burstAsked() {
		asking.Go(func() {
			r := soakReader{soak: s}
			err := r.toEnd(ctx, map[string]any{"to": steady[i%4], "content": "burst " + s.newKey(), "deadline_ms": 300_000})
			switch {
			case ctx.Err() != nil:
			case err != nil:
				wrong(err)
			case r.kind != core.KindDone || r.text.String() != soakBurstText():
				wrong(fmt.Errorf("task %s of %s: got %d bytes and %s, want all %d", r.task, steady[i%4], r.text.Len(), r.end, len(soakBurstText())))
			}
		})
	}
	asking.Wait()
}

// returns measures how long it takes until the resident memory is near what it was. It looks for a
// minute.
func (s *soak) returns(ctx context.Context, before float64, began time.Time) (took time.Duration, ok bool) {
	ended := time.Now()
	most, last := before, before
	for ctx.Err() == nil && time.Since(ended) < 2*burstReturns && !ok {
		now, err := s.sample()
		if err != nil {
			return 0, false
		}
		last = now.values["rss"]
		most = max(most, last)
		if ok = last <= before*burstNear+burstKept; !ok {
			pauseFor(ctx, 500*time.Millisecond)
		}
	}
	took = time.Since(ended)
	what := fmt.Sprintf("back within %.1f s", took.Seconds())
	if !ok {
		what = fmt.Sprintf("after %.0f s %.0f MiB", took.Seconds(), last/mebi)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.burstLines = append(s.burstLines, fmt.Sprintf("burst of %d answers of %d chunks in %.1f s: %.0f MiB before, %.0f MiB after it, %s",
		burstAsked(), burstSaid, ended.Sub(began).Seconds(), before/mebi, most/mebi, what))
	return took, ok
}

// lastBurst has a burst on a hub without other load, whose memory has to be returned in time.
func (s *soak) lastBurst(t *testing.T) {
	t.Helper()
	s.ctx, s.cancel = context.WithCancelCause(t.Context())
	for _, id := range steady[:4] {
		s.workers.Go(func() { s.join(s.ctx, strings.TrimSuffix(id, "-steady"), id, nil) })
		s.untilJoined(id)
	}
	time.Sleep(service.MemoryReturned) // what the load took
	before, err := s.sample()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	s.askBurst(s.ctx, func(err error) { t.Error(err) })
	took, ok := s.returns(s.ctx, before.values["rss"], began)
	line := s.burstLines[len(s.burstLines)-1]
	t.Logf("without other load: %s", line)
	if !ok || took > burstReturns {
		t.Errorf("%s: want %.0f %% of what it was and %d MiB within %v", line, burstNear*100, int(burstKept)/mebi, burstReturns)
	}
	s.end()
}
