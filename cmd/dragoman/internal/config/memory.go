package config

import (
	"bufio"
	"bytes"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

// halfOfMemory returns the default of limits.memory: half of the memory of the machine, or of
// the control group's limit if that is lower; 0 if neither is known. root is the root of the
// file system.
func halfOfMemory(root fs.FS) int64 {
	least := machineMemory(root)
	for _, limit := range cgroupLimits(root) {
		if least == 0 || limit < least {
			least = limit
		}
	}
	return least / 2
}

// machineMemory returns the memory of a Linux machine, or 0.
func machineMemory(root fs.FS) int64 {
	b, _ := fs.ReadFile(root, "proc/meminfo") // only on Linux
	for lines := bufio.NewScanner(bytes.NewReader(b)); lines.Scan(); {
		if rest, ok := strings.CutPrefix(lines.Text(), "MemTotal:"); ok {
			n, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return n << 10
		}
	}
	return 0
}

// cgroupLimits returns the limits of the control groups of the process, up to the root, of
// versions 1 and 2.
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
