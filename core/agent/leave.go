package agent

import (
	"context"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
)

// Leave lets an agent finish its tasks before it leaves. The context of its connection carries it
// to what runs the tasks: see [WithLeave]. A nil Leave is never asked. It is safe for concurrent
// use.
type Leave struct {
	left  func()
	asked chan struct{} // closed by Ask

	mu    sync.Mutex
	tasks int // begun and not ended
}

// NewLeave returns a Leave that calls left once the agent was asked to leave and has no task.
func NewLeave(left func()) *Leave { return &Leave{left: left, asked: make(chan struct{})} }

// leaveKey is the key of a Leave in a context.
type leaveKey struct{}

// WithLeave returns a context for the connections of an agent that may be asked to leave.
func WithLeave(ctx context.Context, l *Leave) context.Context {
	return context.WithValue(ctx, leaveKey{}, l)
}

// LeaveOf returns the Leave that a context carries, or nil.
func LeaveOf(ctx context.Context) *Leave {
	l, _ := ctx.Value(leaveKey{}).(*Leave)
	return l
}

// Ask makes the agent take nothing new, and returns how many tasks it has to finish. It may be
// called once.
func (l *Leave) Ask() (tasks int) {
	l.mu.Lock()
	close(l.asked)
	tasks = l.tasks
	l.mu.Unlock()
	if tasks == 0 {
		l.left()
	}
	return tasks
}

// Asked is closed once the agent takes nothing new; a nil channel for a nil Leave.
func (l *Leave) Asked() <-chan struct{} {
	if l == nil {
		return nil
	}
	return l.asked
}

// IsAsked reports whether the agent takes nothing new.
func (l *Leave) IsAsked() bool {
	select {
	case <-l.Asked():
		return true
	default:
		return false
	}
}

// OnAsk calls tell in a goroutine of its own once the agent is asked to leave: it says so in a
// dialect that has a word for it. stop, which is to be called, waits for tell.
func (l *Leave) OnAsk(tell func()) (stop func()) {
	if l == nil {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-l.asked:
			tell()
		case <-done:
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// Begin counts a task until End. It returns why the agent refuses it, an unreachable Fault, once
// it was asked to leave: another agent may do it.
func (l *Leave) Begin() *core.Fault {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.IsAsked() {
		return core.NewFault(core.CodeUnreachable, "the agent is about to leave and takes nothing new: ask again later or ask another")
	}
	l.tasks++
	return nil
}

// End ends a task that has begun, after its end was handed to the connection: closing that gracefully sends it.
func (l *Leave) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	l.tasks--
	last := l.tasks == 0 && l.IsAsked()
	l.mu.Unlock()
	if last {
		l.left()
	}
}
