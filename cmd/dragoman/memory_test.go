package main

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"
)

func TestTheDefaultMemoryLimitIsHalfOfTheMachineOrItsControlGroup(t *testing.T) {
	const machine = "MemTotal:       16777216 kB\nMemFree:  1 kB\n" // 16 GiB
	for name, tt := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"a machine":      {map[string]string{"proc/meminfo": machine}, 8 << 30},
		"not Linux":      {nil, 0},
		"version 2":      {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n"}, 512 << 20},
		"a group above":  {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "2147483648\n"}, 1 << 30},
		"in a container": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "1073741824\n"}, 512 << 20},
		"without limit":  {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 8 << 30},
		"version 1":      {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1073741824\n"}, 512 << 20},
		"version 1, where the container's group is the root": {
			map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/docker/x\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "1073741824\n"}, 512 << 20,
		},
		"version 1 without limit": {
			map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 8 << 30,
		},
	} {
		root := fstest.MapFS{}
		for file, text := range tt.files {
			root[file] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := halfOfMemory(root); got != tt.want {
			t.Errorf("%s: got %d, want %d", name, got, tt.want)
		}
	}
}

func TestTheMemoryLimitOfAHubIsASettingUnlessTheEnvironmentSetsIt(t *testing.T) {
	usual := strconv.FormatInt(defaultConfig().Limits.Memory, 10)
	for _, tt := range []struct{ setting, env, want string }{
		{"", "", usual},
		{"268435456", "", "268435456"},
		{"268435456", "200MiB", strconv.Itoa(200 << 20)},
		{"0", "", usual},
	} {
		t.Setenv("DRAGOMAN_LIMITS_MEMORY", tt.setting)
		if tt.setting == "" {
			t.Setenv("DRAGOMAN_LIMITS_MEMORY", "0")
		}
		t.Setenv("GOMEMLIMIT", tt.env)
		hub := startHub(t)
		resp, err := http.Get("http://" + hub.http + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		m := regexp.MustCompile(`(?m)^go_gc_gomemlimit_bytes (\S+)$`).FindSubmatch(body)
		if m == nil {
			t.Fatalf("got no limit in the metrics, want one: %s", body)
		}
		got, err := strconv.ParseFloat(string(m[1]), 64)
		if want, _ := strconv.ParseFloat(tt.want, 64); err != nil || got != want {
			t.Errorf("the setting %q and GOMEMLIMIT %q: got %s, want %s", tt.setting, tt.env, m[1], tt.want)
		}
	}
}

// ballast is memory that a test has in use.
var ballast [][]byte

func TestAnIdleHubReturnsItsMemoryOnceInAnIdlePeriod(t *testing.T) {
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
	if n := strings.Count(out.String(), "memory was returned"); n < 3 || n > 5 {
		t.Errorf("memory was returned %d times, want once in each of four idle periods: %s", n, out.String())
	}
	runtime.KeepAlive(&ballast)
}
