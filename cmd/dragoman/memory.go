package main

import (
	"bufio"
	"bytes"
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"time"
)

// limitMemory tells the garbage collector how much memory the process should use at most,
// unless the environment says so itself. Near the limit it collects more often; it refuses
// nothing.
func limitMemory(limit int64) {
	if limit > 0 && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(limit)
	}
}

// halfOfMemory is the default of limits.memory: half of what the machine has, or of what
// the control group of the process is allowed if that is less; 0 where neither is told.
// root is the root of the file system.
func halfOfMemory(root fs.FS) int64 {
	least := machineMemory(root)
	for _, limit := range cgroupLimits(root) {
		if least == 0 || limit < least {
			least = limit
		}
	}
	return least / 2
}

// machineMemory is how much memory Linux says the machine has, or 0.
func machineMemory(root fs.FS) int64 {
	b, _ := fs.ReadFile(root, "proc/meminfo") // elsewhere there is none
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// cgroupLimits are the limits of the control groups that the process is in, up to the
// root: those of version 2, and that of version 1.
func cgroupLimits(root fs.FS) (limits []int64) {
	const groups = "sys/fs/cgroup"
	read := func(file string) {
		b, err := fs.ReadFile(root, file)
		if n, bad := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && bad == nil && n > 0 {
			limits = append(limits, n)
		}
	}
	own, _ := fs.ReadFile(root, "proc/self/cgroup")
	for line := range strings.Lines(string(own)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		tree, file := groups, "memory.max"
		if fields[1] == "memory" {
			tree, file = groups+"/memory", "memory.limit_in_bytes"
		} else if fields[1] != "" {
			continue // another controller of version 1
		}
		for group := path.Join("/", fields[2]); ; group = path.Dir(group) {
			read(path.Join(tree, group, file))
			if group == "/" {
				break
			}
		}
	}
	return limits
}

// idleCheck is how often it is looked whether the process is idle.
const idleCheck = 5 * time.Second

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
