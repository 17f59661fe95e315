package service

import (
	"context"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// LimitMemory sets the memory limit of the garbage collector, unless the environment does.
// Near the limit it collects more often.
func LimitMemory(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// contentMemory returns how much of limits.memory the logs of tasks, queues and bodies may take:
// three quarters. The rest is for what is not counted, such as conversations, and for garbage, so
// that a full hub does not collect all the time.
func contentMemory(limit int64) int64 { return limit / 4 * 3 }

// idleCheck is the time between two checks whether the process is idle.
const idleCheck = 5 * time.Second

// MemoryReturned is the maximum time after its last work until a hub has returned its
// memory.
const MemoryReturned = (seldomReturned + 1) * idleCheck

const (
	// worthReturning is how much the held memory must have grown since the last time to be
	// returned as soon as the process is idle.
	worthReturning = 32 << 20
	// seldomReturned is the number of checks after which memory is returned otherwise:
	// memory in use may have become free without more being held.
	seldomReturned = 12
	// returnedAgain is the number of checks after a load at which memory is returned again: pooled buffers are
	// freed by a second collection, and caches of the NATS server seconds after their last use.
	returnedAgain = 3
	// idleBytes is the most that a hub without work allocates in that time.
	idleBytes = 128 << 10
)

// ReturnMemory returns memory to the system whenever the process becomes idle, until the
// service ends.
func (s *Service) ReturnMemory() {
	s.loops.Go(func() {
		tick := time.NewTicker(idleCheck)
		defer tick.Stop()
		returnMemory(s.ctx, tick.C, s.log)
	})
}

// returnMemory returns memory to the system when the process becomes idle, until ctx
// ends. The runtime does not: it collects when the heap has doubled, which an idle heap
// never does, and keeps what it freed for the next load.
//
// It compares allocations between two ticks, which costs nothing per message. A
// collection costs in proportion to the heap, so memory is returned a few times per idle period: at once
// and at the next checks if the load left much more, and at most once a minute after little work.
func returnMemory(ctx context.Context, ticks <-chan time.Time, log *slog.Logger) {
	allocated, held := memoryNow()
	returned, kept, checks, again := allocated, held, 0, 0
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
		if busy || again == 0 && !grown && (!worked || checks < seldomReturned) {
			continue
		}
		if again--; grown {
			again = returnedAgain
		}
		again = max(again, 0)
		was := held
		debug.FreeOSMemory()
		allocated, held = memoryNow()
		returned, kept, checks = allocated, held, 0
		log.Debug("the hub is idle: memory was returned to the system", "held_before", was, "held", held)
	}
}

// memoryNow returns the bytes allocated since the start, and those that the runtime holds.
func memoryNow() (allocated, held uint64) {
	s := []metrics.Sample{
		{Name: "/gc/heap/allocs:bytes"}, {Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
	}
	metrics.Read(s)
	return s[0].Value.Uint64(), s[1].Value.Uint64() - s[2].Value.Uint64()
}
