package service

import (
	"context"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// usualPercent is how much garbage, in percent of what is live, the collector of Go waits for, and seldomPercent
	// that while the heap is small: then a load collects three times for every ten.
	usualPercent, seldomPercent = 100, 300
	// smallHeap is the size up to which a heap grows beyond the usual.
	smallHeap = 192 << 20
)

// LimitMemory sets the memory limit of the garbage collector, unless GOMEMLIMIT does: near it the collector
// runs more often. Unless GOGC is set, it runs less often than usual while the heap is small, until ctx ends.
func LimitMemory(ctx context.Context, limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
	if os.Getenv("GOGC") == "" {
		collectSeldom(ctx, uint64(min(smallHeap, debug.SetMemoryLimit(-1)/2))) //nolint:gosec // a limit is not negative
	}
}

// collectSeldom adjusts after each collection, until ctx ends, how much garbage the next one waits for. A lower memory limit would
// do so without this, but what is live may exceed any limit that is small enough, and then the collector
// would run all the time.
func collectSeldom(ctx context.Context, small uint64) {
	if ctx.Err() != nil {
		debug.SetGCPercent(usualPercent)
		return
	}
	// The percent is that of all this: ten thousand agents have more stack than heap.
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	metrics.Read(s)
	debug.SetGCPercent(garbagePercent(s[0].Value.Uint64()+s[1].Value.Uint64()+s[2].Value.Uint64(), small))
	type unused struct{ _ *byte } // with a pointer, so that it shares its memory with nothing that lives on
	runtime.AddCleanup(new(unused), func(small uint64) { collectSeldom(ctx, small) }, small)
}

// garbagePercent returns how much garbage the collector waits for, in percent of live: what a small heap has room for,
// and never less than usual, so that no heap is collected more often than without it.
func garbagePercent(live, small uint64) int {
	if live >= small/2 {
		return usualPercent
	}
	return int(min(seldomPercent, (small-live)*100/max(1, live))) //nolint:gosec // at most seldomPercent
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
