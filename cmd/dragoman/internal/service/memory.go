package service

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// LimitMemory tells the garbage collector how much memory the process should use at most,
// unless the environment says so itself. Near the limit it collects more often; it refuses
// nothing.
func LimitMemory(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// idleCheck is how often it is looked whether the process is idle.
const idleCheck = 5 * time.Second

// MemoryReturned is how long after its last work a hub has returned its memory at the
// latest.
const MemoryReturned = (seldomReturned + 1) * idleCheck

const (
	// worthReturning is how much more memory than after the last time has to be held for
	// memory to be returned at once when the process is idle.
	worthReturning = 32 << 20
	// seldomReturned is how many checks have to pass otherwise: what was in use may have
	// become free although no more is held.
	seldomReturned = 12
	// idleBytes are allocated in that time at most by a hub that does nothing.
	idleBytes = 128 << 10
)

// ReturnMemory gives memory back to the system whenever the process has become idle,
// until the service ends.
func (s *Service) ReturnMemory() {
	s.loops.Go(func() {
		tick := time.NewTicker(idleCheck)
		defer tick.Stop()
		returnMemory(s.ctx, tick.C, s.log)
	})
}

// returnMemory gives memory back to the system when the process has become idle, until ctx
// ends. The runtime does not by itself: it collects when the heap has doubled, which an
// idle heap does not, and keeps what it has freed for the next load.
//
// One ticker looks at what was allocated since the last tick. Nothing has to tell it of
// work, so that no path of a message pays for it. It returns memory once in an idle period,
// since a collection costs as much as there is in memory: when a load has left more, and
// once a minute at most when there was little work.
func returnMemory(ctx context.Context, ticks <-chan time.Time, log *slog.Logger) {
	allocated, held := memoryNow()
	returned, kept, checks := allocated, held, 0
	for {
		select {
		case <-ticks:
		case <-ctx.Done():
			return
		}
		before := allocated
		allocated, held = memoryNow()
		kept = min(kept, held)
		checks++
		busy := allocated-before > held/16
		grown := held >= kept+worthReturning
		worked := allocated-returned > idleBytes
		if busy || !grown && (!worked || checks < seldomReturned) {
			continue
		}
		was := held
		debug.FreeOSMemory()
		allocated, held = memoryNow()
		returned, kept, checks = allocated, held, 0
		log.Debug("the hub is idle: memory was returned to the system", "held_before", was, "held", held)
	}
}

// memoryNow returns how many bytes were ever allocated, and how many the runtime holds of
// the system.
func memoryNow() (allocated, held uint64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64()
}
