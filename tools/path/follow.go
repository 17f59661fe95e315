package main

import (
	"cmp"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// module begins the name of every file that is counted.
const module = "github.com/dragoman-hub/dragoman/"

// A route is what a question in a dialect runs.
type route struct {
	dialect    string
	functions  []function
	statements float64 // how many it runs, each as often as it does
	locks      float64 // how often it takes one of package sync
	allocs     float64 // how many objects it allocates
}

// A function is one that a question runs.
type function struct {
	file, name string
	calls      float64 // for a question
}

// follow returns the route of a question, of what so many questions ran in the checkout at root and in package sync
// of Go. Half of them are enough: what two questions had in one write or one wake may be once less.
func follow(dialect, root, goroot string, ran counters, questions int) (route, error) {
	r := route{dialect: dialect}
	for file, blocks := range ran.often(questions / 2) {
		name, ours := strings.CutPrefix(file, module)
		dir := root
		if !ours {
			dir = filepath.Join(goroot, "src")
		}
		all, err := spans(filepath.Join(dir, filepath.FromSlash(name)))
		if err != nil {
			return route{}, err
		}
		if !ours {
			r.locks += float64(locks(all, blocks)) / float64(questions)
			continue
		}
		for b, n := range blocks {
			r.statements += float64(b.statements*n) / float64(questions)
		}
		for _, s := range all {
			if calls, on := s.calls(blocks); on {
				r.functions = append(r.functions, function{name, s.name, float64(calls) / float64(questions)})
			}
		}
	}
	slices.SortFunc(r.functions, func(a, b function) int {
		return cmp.Or(cmp.Compare(a.file, b.file), cmp.Compare(a.name, b.name))
	})
	return r, nil
}

// locks returns how often the functions of a file of package sync took a lock. RWMutex.Lock locks a Mutex.
func locks(of []span, blocks counters) (sum int) {
	for _, s := range of {
		if s.name == "Mutex.Lock" || s.name == "RWMutex.RLock" {
			n, _ := s.calls(blocks)
			sum += n
		}
	}
	return sum
}

// calls returns how often a function was entered, and whether it has one of the blocks at all: the loop of a
// connection is entered once, and runs for every question.
func (s span) calls(blocks counters) (calls int, on bool) {
	for b, n := range blocks {
		on = on || s.contains(b)
		if s.begins(b) {
			calls = n
		}
	}
	return calls, on
}

// files returns how many files the functions stand in.
func (r route) files() int {
	return r.distinct(func(f function) string { return f.file })
}

// packages returns how many packages the functions stand in.
func (r route) packages() int {
	return r.distinct(func(f function) string { return path.Dir(f.file) })
}

func (r route) distinct(of func(function) string) int {
	seen := make(map[string]bool)
	for _, f := range r.functions {
		seen[of(f)] = true
	}
	return len(seen)
}

// calls returns how many calls a question makes.
func (r route) calls() (sum float64) {
	for _, f := range r.functions {
		sum += f.calls
	}
	return sum
}

// list prints the functions with their calls for a question.
func (r route) list(out io.Writer) {
	for _, f := range r.functions {
		fmt.Fprintf(out, "%s\t%.1f\t%s\t%s\n", r.dialect, f.calls, f.file, f.name)
	}
}
