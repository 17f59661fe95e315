package demo

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
)

// Pairs are the questions of the demo: each of the Requesters asks each of the other Answerers.
func Pairs() (all [][2]string) {
	for _, from := range Requesters {
		for _, to := range Answerers {
			if from != to {
				all = append(all, [2]string{from, to})
			}
		}
	}
	return all
}

// Careful is the agent that does nothing before a person has approved it.
const Careful = "careful"

// cleaning is the tool for which it wants approval.
const cleaning = `{"path":"/var/log/demo","older_than":"7d"}`

// Talk joins the agent Careful, and has the others ask each other, a question every so often, until
// ctx ends. All the while the Coven agent asks Careful, so that somebody is mostly waited for. The
// log gets the questions that fail.
func (all *Agents) Talk(ctx context.Context, at service.Addresses, every time.Duration, log *slog.Logger) error {
	if err := all.joinCareful(ctx, client.Hub{URL: "http://" + at.HTTP, GRPC: at.GRPC}, log); err != nil {
		return err
	}
	ask := func(from, to, content string) {
		if _, err := all.Ask(ctx, from, to, content); err != nil && ctx.Err() == nil {
			log.Warn("a question got no answer", "from", from, "to", to, "error", err)
		}
	}
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waiting.Go(func() {
		for pause(ctx, every) {
			ask("coven", Careful, "please clean up")
		}
	})
	pairs := Pairs()
	for n := 0; pause(ctx, every); n++ {
		// Steps of 5 mix the dialects, and leave none of the 28 pairs out.
		p := pairs[n*5%len(pairs)]
		ask(p[0], p[1], fmt.Sprintf("good day once more, it is number %d", n+1))
	}
	return nil
}

// pause waits, and reports false once ctx has ended.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// joinCareful joins the agent Careful, and returns once it is there.
func (all *Agents) joinCareful(ctx context.Context, to client.Hub, log *slog.Logger) error {
	c := &careful{decided: map[string]chan bool{}}
	joined, ended := make(chan struct{}), make(chan error, 1)
	card := core.Card{
		ID: Careful, Name: "the careful agent", Capabilities: []string{"clean"}, MaxConcurrent: 1,
		Features: core.FeatureStreaming | core.FeatureCancellation,
	}
	all.group.Go(func() {
		ended <- client.JoinNativeWith(ctx, to, card, c.answer, nativeclient.WorkOptions{
			Joined: func(*nativeclient.Client) { close(joined) }, Decided: c.decide, Link: client.LinkOptions, Log: log,
		})
	})
	select {
	case <-joined:
		return nil
	case err := <-ended:
		if ctx.Err() != nil {
			return nil // the demo is over
		}
		return fmt.Errorf("the careful agent could not join: %w", err)
	}
}

// careful waits for decisions.
type careful struct {
	mu      sync.Mutex
	decided map[string]chan bool
}

// decide passes a decision to the call that waits for it.
func (c *careful) decide(_ core.TaskID, d core.ApprovalDecided) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if decided := c.decided[d.ID]; decided != nil {
		decided <- d.Approved // there is one decision for each call, and room for it
		delete(c.decided, d.ID)
	}
}

// answer is a core.Handler. It asks for approval of a tool call, and obeys the decision.
func (c *careful) answer(ctx context.Context, _ core.Request, say func(core.Body) error) error {
	call, decided := core.NewID(), make(chan bool, 1)
	c.mu.Lock()
	c.decided[call] = decided
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.decided, call)
	}()
	for _, body := range []core.Body{
		core.Thinking{Text: "Old logs can go, but what is deleted stays deleted: a person should say yes."},
		core.ToolCall{ID: call, Name: "remove_logs", Input: cleaning}, core.ApprovalRequested{ID: call, Name: "remove_logs", Input: cleaning},
	} {
		if err := say(body); err != nil {
			return err
		}
	}
	select {
	case approved := <-decided:
		result, text := core.ToolResult{ID: call, Output: "3 files removed"}, "The old logs are gone."
		if !approved {
			result, text = core.ToolResult{ID: call, Output: "nobody approved it", IsError: true}, "The logs stay."
		}
		return errors.Join(say(result), say(core.Text{Text: text}))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
