package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A block is a piece of a function that has a counter.
type block struct {
	file         string // with the path of its package
	line, column int    // where it begins
	end          string
	statements   int
}

// counters say how often each block has run.
type counters map[block]int

// read reads the counters that a process has left in a directory.
func read(ctx context.Context, dir string) (counters, error) {
	file := filepath.Join(dir, "counters.txt")
	c := exec.CommandContext(ctx, "go", "tool", "covdata", "textfmt", "-i", dir, "-o", file)
	if said, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", c, err, said)
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parse(f)
}

// parse reads counters in the text format of go test -coverprofile: a line with the mode, then one for each block.
func parse(r io.Reader) (counters, error) {
	all := make(counters)
	lines := bufio.NewScanner(r)
	lines.Scan()
	if !strings.HasPrefix(lines.Text(), "mode: ") {
		return nil, fmt.Errorf("counters begin with %q, not with their mode", lines.Text())
	}
	for lines.Scan() {
		file, rest, _ := strings.Cut(lines.Text(), ":")
		b, n := block{file: file}, 0
		if _, err := fmt.Sscanf(strings.Replace(rest, ",", " ", 1), "%d.%d %s %d %d", &b.line, &b.column, &b.end, &b.statements, &n); err != nil {
			return nil, fmt.Errorf("the counter %q: %w", lines.Text(), err)
		}
		all[b] += n
	}
	return all, lines.Err()
}

// less returns how much more each block has run than in other counters.
func (c counters) less(before counters) counters {
	more := make(counters, len(c))
	for b, n := range c {
		more[b] = n - before[b]
	}
	return more
}

// often returns, by file, the blocks that have run at least n times.
func (c counters) often(n int) map[string]counters {
	byFile := make(map[string]counters)
	for b, ran := range c {
		if ran < n {
			continue
		}
		if byFile[b.file] == nil {
			byFile[b.file] = make(counters)
		}
		byFile[b.file][b] = ran
	}
	return byFile
}
