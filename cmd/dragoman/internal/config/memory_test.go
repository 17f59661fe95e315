package config

import (
	"testing"
	"testing/fstest"
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

func TestASizeIsParsed(t *testing.T) {
	for text, want := range map[string]int64{
		"1GiB": 1 << 30, "64MiB": 64 << 20, "64 MiB": 64 << 20, "4KiB": 4096, "1TiB": 1 << 40, "1GB": 1e9, "10MB": 1e7, "5kB": 5000, "5KB": 5000, "7B": 7, "0MiB": 0,
		"64k": 64_000, "64Ki": 65_536, "1G": 1e9, "1gib": 1 << 30, "10mb": 1e7, "1.5GiB": 3 << 29, "0.5 MB": 500_000, "1.1KiB": 1126, "1": 1,
	} {
		if got, ok := ParseSize(text); !ok || got != want {
			t.Errorf("%q: got %d and %t, want %d", text, got, ok, want)
		}
	}
	for _, text := range []string{"", "GiB", "-1GiB", "1.5", "1.5B", ".5GiB", "1  GiB", "1i", "1iB", "1GiBs", "1EB", "9999999999TiB"} {
		if got, ok := ParseSize(text); ok {
			t.Errorf("%q: got %d, want no size", text, got)
		}
	}
}
