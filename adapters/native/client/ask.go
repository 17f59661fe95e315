package client

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// Ask opens a task and waits for its end. each, if not nil, gets the events from the reader of
// the connection; it must return soon. When ctx ends first, the task is cancelled. A failure is
// a *[core.Fault].
func (c *Client) Ask(ctx context.Context, req core.Request, each func(core.Event)) (core.Answer, error) {
	var mu sync.Mutex
	var events []core.Event
	ended := make(chan struct{})
	v, stop, err := c.Follow(ctx, &core.Open{Request: &req}, wire.With{}, func(t wire.Told) {
		mu.Lock()
		events = append(events, t.Event)
		mu.Unlock()
		if each != nil {
			each(t.Event)
		}
		if t.Event.Body.Kind().Ends() {
			close(ended)
		}
	})
	defer stop()
	if err != nil {
		return core.Answer{}, refusal(err)
	}
	select {
	case <-ended:
	case <-c.done:
		select {
		case <-ended:
		default:
			return core.Answer{}, c.ended()
		}
	case <-ctx.Done():
		task, _ := v.Get("task").Text()
		c.cancel(core.TaskID(task))
		return core.Answer{}, context.Cause(ctx)
	}
	mu.Lock()
	defer mu.Unlock()
	answer := core.Fold(events)
	if answer.Fault != nil {
		return answer, answer.Fault
	}
	return answer, nil
}

// refusal returns the Fault of a Refusal, and any other error unchanged.
func refusal(err error) error {
	var r *wire.Refusal
	if errors.As(err, &r) {
		return r.Fault
	}
	return err
}

// cancel stops a task that nobody waits for any more.
func (c *Client) cancel(task core.TaskID) {
	ctx, done := context.WithTimeout(context.Background(), time.Second)
	defer done()
	_, _ = c.Call(ctx, core.Cancel{Task: task, Reason: "the requester stopped waiting"}, wire.With{}) // the hub's own deadline stops it otherwise
}
