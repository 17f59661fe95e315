package service

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"sync"
	"testing"
	"time"
)

// ballast is memory that a test has in use.
var ballast [][]byte

func TestAnIdleHubReturnsItsMemoryAFewTimesInAnIdlePeriod(t *testing.T) {
	debug.FreeOSMemory() // what the tests before this one left would be used first
	ctx, cancel := context.WithCancel(t.Context())
	ticks := make(chan time.Time)
	var out bytes.Buffer
	var group sync.WaitGroup
	group.Go(func() {
		returnMemory(ctx, ticks, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	})
	tick := func(n int) {
		for range n {
			ticks <- time.Now()
		}
	}
	tick(3)
	for round := range 2 {
		_, before := memoryNow()
		for range 256 {
			b := make([]byte, 1<<20)
			for i := 0; i < len(b); i += 4096 {
				b[i] = 1
			}
			ballast = append(ballast, b)
		}
		tick(1) // it was busy
		if _, held := memoryNow(); held < before+200<<20 {
			t.Fatalf("round %d: got %d MiB held while busy, want 256 MiB more than %d", round, held>>20, before>>20)
		}
		ballast = nil
		tick(10)
		if _, held := memoryNow(); held > before+worthReturning {
			t.Errorf("round %d: got %d MiB held when idle, want about %d", round, held>>20, before>>20)
		}
	}
	// What becomes free although no more is held is returned too, if later.
	for range 256 {
		ballast = append(ballast, bytes.Repeat([]byte("x"), 1<<20))
	}
	tick(2 + seldomReturned) // what is returned is little
	_, before := memoryNow()
	ballast = nil
	for range 4 {
		tick(1)
		ballast = append(ballast, make([]byte, idleBytes))
	}
	tick(seldomReturned)
	if _, held := memoryNow(); held > before-200<<20 {
		t.Errorf("got %d MiB held, want 256 MiB less than %d", held>>20, before>>20)
	}
	ballast = nil
	cancel()
	group.Wait()
	if n := strings.Count(out.String(), "memory was returned"); n < 4 || n > 4*(1+returnedAgain) {
		t.Errorf("memory was returned %d times, want a few times in each of four idle periods: %s", n, out.String())
	}
	runtime.KeepAlive(&ballast)
}

func TestTheCollectorWaitsForMoreGarbageWhileTheHeapIsSmall(t *testing.T) {
	for _, tt := range []struct {
		live uint64
		want int
	}{{0, 300}, {20 << 20, 300}, {48 << 20, 300}, {64 << 20, 200}, {96 << 20, 100}, {600 << 20, 100}} {
		if got := garbagePercent(tt.live, smallHeap); got != tt.want {
			t.Errorf("%d MiB live: got %d %%, want %d %%", tt.live>>20, got, tt.want)
		}
	}
}

func TestTheCollectorFollowsTheHeap(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer debug.SetGCPercent(usualPercent)
	// untilPercent collects until the collector waits for so much garbage.
	untilPercent := func(want uint64) {
		t.Helper()
		s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
		for end := time.Now().Add(30 * time.Second); ; {
			runtime.GC()
			if metrics.Read(s); s[0].Value.Uint64() == want {
				return
			}
			if time.Now().After(end) {
				t.Fatalf("got %d %% after 30 s, want %d %%", s[0].Value.Uint64(), want)
			}
		}
	}
	collectSeldom(ctx, 256<<20)
	untilPercent(seldomPercent)
	ballast = [][]byte{make([]byte, 150<<20)}
	untilPercent(usualPercent)
	ballast = nil
	untilPercent(seldomPercent)
	cancel()
	untilPercent(usualPercent)
}
