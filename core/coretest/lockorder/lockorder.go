package lockorder

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
)

// Found names the variable of the environment with the file to which circles of locks are added.
const Found = "LOCKORDER_FOUND"

// Mutex is a [sync.Mutex] that notes when it is held. The one field of Field names it.
type Mutex[Field any] struct{ m sync.Mutex }

// Lock implements [sync.Locker].
func (m *Mutex[Field]) Lock() {
	order.lock(fieldOf[Field]())
	m.m.Lock()
}

// TryLock is that of [sync.Mutex]. It waits for nothing, so it has no place in the order.
func (m *Mutex[Field]) TryLock() bool {
	got := m.m.TryLock()
	if got {
		order.hold(fieldOf[Field]())
	}
	return got
}

// Unlock implements [sync.Locker].
func (m *Mutex[Field]) Unlock() {
	m.m.Unlock()
	order.release(fieldOf[Field]())
}

// RWMutex is a [sync.RWMutex] that notes when it is held. To read counts as to write, for a writer that waits keeps out readers.
type RWMutex[Field any] struct{ m sync.RWMutex }

// Lock implements [sync.Locker].
func (m *RWMutex[Field]) Lock() {
	order.lock(fieldOf[Field]())
	m.m.Lock()
}

// Unlock implements [sync.Locker].
func (m *RWMutex[Field]) Unlock() {
	m.m.Unlock()
	order.release(fieldOf[Field]())
}

// RLock is that of [sync.RWMutex].
func (m *RWMutex[Field]) RLock() {
	order.lock(fieldOf[Field]())
	m.m.RLock()
}

// RUnlock is that of [sync.RWMutex].
func (m *RWMutex[Field]) RUnlock() {
	m.m.RUnlock()
	order.release(fieldOf[Field]())
}

func fieldOf[Field any]() string { return reflect.TypeFor[Field]().Field(0).Name }

// order is what was held when something was taken.
var order = locks{held: map[string][]string{}, after: map[string]map[string]string{}}

type locks struct {
	mu    sync.Mutex
	held  map[string][]string          // by goroutine
	after map[string]map[string]string // the locks that were taken while one was held, with the first stack of each
}

// lock notes that the goroutine waits for a lock, which it then has.
func (l *locks) lock(field string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, held := range l.held[goroutine()] {
		if _, known := l.after[held][field]; !known && held != field {
			l.follows(held, field)
		}
	}
	l.add(field)
}

func (l *locks) hold(field string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.add(field)
}

func (l *locks) add(field string) {
	g := goroutine()
	l.held[g] = append(l.held[g], field)
}

func (l *locks) release(field string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	g := goroutine() // that unlocks what another one has locked is not done here
	held := l.held[g]
	for i, h := range slices.Backward(held) {
		if h == field {
			held = slices.Delete(held, i, i+1)
			break
		}
	}
	if l.held[g] = held; len(held) == 0 {
		delete(l.held, g)
	}
}

// follows notes that a lock was taken while another one was held, and tells the circle that this closes.
func (l *locks) follows(held, field string) {
	stack, calledBack := callers()
	if calledBack {
		return
	}
	if l.after[held] == nil {
		l.after[held] = map[string]string{}
	}
	l.after[held][field] = stack
	way := l.way(field, held, map[string]bool{})
	if way == nil {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "circle: %s, %s\n", held, strings.Join(way, ", "))
	for i, from := range append([]string{held}, way[:len(way)-1]...) {
		fmt.Fprintf(&text, "%s is taken while %s is held:\n%s", way[i], from, l.after[from][way[i]])
	}
	f, err := os.OpenFile(os.Getenv(Found), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, err = f.WriteString(text.String())
		_ = f.Close()
	}
	if err != nil {
		panic(text.String())
	}
}

// way returns the locks from one to another, each taken while the one before was held; nil if there is no such way.
func (l *locks) way(from, to string, seen map[string]bool) []string {
	if from == to {
		return []string{to}
	}
	seen[from] = true
	for _, next := range slices.Sorted(maps.Keys(l.after[from])) {
		if seen[next] {
			continue
		}
		if rest := l.way(next, to, seen); rest != nil {
			return append([]string{from}, rest...)
		}
	}
	return nil
}

func goroutine() string {
	var b [64]byte
	name, _, _ := bytes.Cut(b[:runtime.Stack(b[:], false)], []byte(" ["))
	return string(name)
}

// callers returns who takes a lock, the latest call first, and whether a test that the program has called does: what
// observers of tests do while they are called is their own affair.
func callers() (stack string, calledBack bool) {
	var at [64]uintptr
	frames := runtime.CallersFrames(at[:runtime.Callers(5, at[:])])
	var text strings.Builder
	for ofTest := false; ; {
		f, more := frames.Next()
		test := strings.HasSuffix(f.File, "_test.go") || strings.Contains(f.File, "/coretest/")
		ours := strings.Contains(f.Function, "/dragoman/")
		calledBack = calledBack || ofTest && ours && !test
		ofTest = ofTest || test
		if ours {
			fmt.Fprintf(&text, "\t%s:%d\n", f.Function[strings.LastIndexByte(f.Function, '/')+1:], f.Line)
		}
		if !more {
			return text.String(), calledBack
		}
	}
}
