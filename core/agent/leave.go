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
	idle  chan struct{} // closed once asked and without a task

	mu          sync.Mutex
	tasks       int // begun and not ended
	connections int // that are not drained and have not ended
}

// NewLeave returns a Leave that calls left once the agent was asked to leave, has no task, and its connections
// have sent all that it said. left may be called more than once, and must not call the Leave.
func NewLeave(left func()) *Leave {
	return &Leave{left: left, asked: make(chan struct{}), idle: make(chan struct{})}
}

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
	defer l.mu.Unlock()
	close(l.asked)
	l.settleLocked()
	return l.tasks
}

// settleLocked notes that there is no task any more, and leaves if no connection has anything to send.
func (l *Leave) settleLocked() {
	if !l.IsAsked() || l.tasks > 0 {
		return
	}
	select {
	case <-l.idle:
	default:
		close(l.idle)
	}
	if l.connections == 0 {
		l.left()
	}
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

// Connected tells l of a connection of the agent. Once the agent is asked to leave, tell, unless it is nil,
// says so in a dialect that has a word for it. Once no task is left, drain, which ends with the connection,
// waits until all is sent. Both are called in a goroutine of their own, for which disconnected waits. It is to
// be called when the connection has ended.
func (l *Leave) Connected(tell, drain func()) (disconnected func()) {
	if l == nil {
		return func() {}
	}
	l.mu.Lock()
	l.connections++
	l.mu.Unlock()
	gone, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-l.asked:
			if tell != nil {
				tell()
			}
		case <-gone:
		}
		select {
		case <-l.idle:
			drain()
		case <-gone:
		}
		l.mu.Lock()
		defer l.mu.Unlock()
		l.connections--
		l.settleLocked()
	}()
	return func() {
		close(gone)
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

// End ends a task that has begun, after its end was handed to the connection.
func (l *Leave) End() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tasks--
	l.settleLocked()
}
