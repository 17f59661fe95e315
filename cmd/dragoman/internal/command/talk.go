package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

// noInputFlag declares --no-input.
func noInputFlag(f *pflag.FlagSet, noInput *bool) {
	f.BoolVar(noInput, "no-input", false, "ask nothing, also at a terminal")
}

// talk is how a command asks agents and shows what they say: to a person at a terminal, who decides there on what waits,
// or to whoever reads its streams.
type talk struct {
	to       *hubFlags
	hub      *client.Client
	thinking bool
	reads    bool     // a person reads stderr
	terminal terminal // nil where nobody is asked, as desk
	desk     *desk
	// asksAgain returns what a person types to ask again what a task asked.
	asksAgain func(core.TaskID) string

	mu   sync.Mutex
	used core.Usage // in all its turns
}

// spent returns the tokens that all turns have used.
func (t *talk) spent() core.Usage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.used
}

func newTalk(to *hubFlags, thinking bool) *talk {
	hub := to.client()
	hub.Header = http.Header{}
	t := &talk{to: to, hub: hub, thinking: thinking, reads: !to.json && isTerminal(to.Err)}
	t.asksAgain = func(id core.TaskID) string { return fmt.Sprintf("'dragoman again%s %s'", to.again(), id) }
	if t.reads {
		hub.Header.Set(questionsHeader, "read")
	}
	return t
}

// attend makes a terminal the place where a person reads and decides.
func (t *talk) attend(c terminal) {
	t.terminal = c
	t.desk = &desk{say: func(text string) { fmt.Fprintln(stream{c, t.to.Err}, text) }, ask: c.ask, size: func() (int, int) { return sizeOf(t.to.Err) }}
}

// takeLines gives what is typed to the desk until ctx ends.
func (t *talk) takeLines(ctx context.Context) {
	for {
		select {
		case line := <-t.terminal.lines():
			if line.err != nil {
				return
			}
			t.desk.take(ctx, line)
		case <-ctx.Done():
			return
		}
	}
}

// printer returns a printer of one task.
func (t *talk) printer() *printer {
	p := &printer{out: t.to.Out, err: t.to.Err, screen: isTerminal(t.to.Out), again: t.to.again(), json: t.to.json, thinking: t.thinking, decides: t.desk != nil}
	if t.terminal != nil {
		p.err = stream{t.terminal, t.to.Err}
		if p.screen {
			p.out = stream{t.terminal, t.to.Out}
		}
	}
	return p
}

// turn is one task of a talk, from its request to its end.
type turn struct {
	*talk
	*printer
	leave     context.CancelCauseFunc
	cancel    func(core.TaskID) // which is asked of the hub
	opened    chan core.TaskID  // has the id until it is cancelled or has ended
	answered  chan struct{}     // closed once the hub has answered the cancel
	thread    core.ThreadID     // once it is opened
	cancelled atomic.Bool       // by this command
	progress  *progress
	agent     string // that has the task
}

// begin returns a turn that has not asked yet, and the context to run it in, which ends with it.
func (t *talk) begin(ctx context.Context) (context.Context, *turn) {
	u := &turn{talk: t, printer: t.printer(), opened: make(chan core.TaskID, 1), answered: make(chan struct{})}
	ctx, u.leave = context.WithCancelCause(ctx)
	u.cancel = func(id core.TaskID) { u.cancelled.Store(interruptTask(ctx, u.hub, id, u.printer.err)) }
	if u.desk != nil {
		u.desk.speak(u.note)
	}
	return ctx, u
}

// interrupt cancels the task; after the first time, and before there is one, it ends the turn.
func (u *turn) interrupt(nth int) {
	if nth > 1 {
		u.leave(errLeft)
		return
	}
	select {
	case id := <-u.opened:
		u.note("cancelling: interrupt again to leave")
		go func() {
			defer close(u.answered)
			u.cancel(id)
		}()
	default:
		u.leave(errLeft)
	}
}

// awaitCancel waits for the answer to a cancel. Without one there will be none: an interrupt ends the turn from now on.
func (u *turn) awaitCancel() {
	if u.thread == "" {
		return // there is nothing to cancel
	}
	select {
	case <-u.opened:
		close(u.answered)
	default:
		<-u.answered
	}
}

// run asks, and prints what comes until the end of the task. It waits up to wait for a hub or an agent that is not
// running yet.
func (u *turn) run(ctx context.Context, a client.TaskRequest, wait time.Duration) error {
	defer u.leave(nil)
	defer u.awaitCancel()
	arrival := client.NewRetry(wait, client.IsAbsent, func(err error) { u.note(fmt.Sprintf("[waiting up to %s: %s]", config.FormatTime(wait), inLine(err))) })
	err := arrival.Do(ctx, func() error { return noteThread(ctx, u.hub, a.Thread, u.printer.err) })
	if wait > 0 {
		u.hub.Header.Set(asksHeader, "again")
	}
	var resp *http.Response
	if err == nil {
		resp, err = openTask(ctx, u.hub, a, arrival, wait > 0) //nolint:bodyclose // follow closes it
	}
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		return &exit{ExitInterrupted, errLeft}
	case err != nil:
		return err
	}
	return u.follow(ctx, resp, a.To)
}

// follow prints the events of the task until its end.
func (u *turn) follow(ctx context.Context, resp *http.Response, to string) error {
	u.showWork(to)
	asks := &questionNotes{hub: u.hub, again: u.again, note: u.note, desk: u.desk, decisions: decisions{hub: u.hub}}
	event, stopNote := noteQuiet(ctx, u.hub, to, u.note)
	err := client.Follow(resp, func(l client.Line, raw []byte) error {
		event(l)
		if b, ok := l.Body.(core.Opened); ok {
			u.opened <- b.Task
			if u.thread = cmp.Or(b.Request.Thread, core.ThreadID(b.Task)); u.reads {
				asks.begin(ctx, u.thread)
			}
		}
		err := u.print(l, raw)
		u.work(l.Body)
		u.put(l.Body)
		return err
	})
	stopNote()
	asks.stop()
	u.progress.end()
	if u.desk != nil {
		u.desk.settle(func(string) bool { return true })
	}
	u.awaitCancel() // the end may overtake the answer to it
	u.offerAgain()
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		return &exit{ExitInterrupted, errLeft}
	case err != nil || u.end == nil:
		u.breakLine()
		if u.task == "" {
			return client.CutOff(err, "no event of the task was received: 'dragoman tail' shows what the hub does")
		}
		return client.CutOff(err, client.TailHint(u.task))
	}
	return u.outcome(u.cancelled.Load())
}

// offerAgain tells a person how to ask again what has failed and may succeed.
func (u *turn) offerAgain() {
	if b, failed := u.end.(core.Failed); failed && b.Fault.Retryable && u.reads {
		u.note("[" + u.asksAgain(u.task) + " asks again]")
	}
}

// put puts what waits for approval before the person, and takes away what is decided.
func (u *turn) put(body core.Body) {
	if u.desk == nil {
		return
	}
	switch b := body.(type) {
	case core.ApprovalRequested:
		id := callID(u.task, b.ID)
		u.desk.settle(func(old string) bool { return old == id }) // it asks again, with another input
		width, _ := sizeOf(u.to.Err)
		call := task.PendingApproval{Task: u.task, ID: b.ID, Name: b.Name, Input: b.Input, InputSHA256: b.InputSHA256}
		u.desk.put(decisions{hub: u.hub}.approval(call, "", width))
	case core.ApprovalDecided:
		u.desk.settle(func(id string) bool {
			return id == callID(u.task, b.ID) || b.All && strings.HasPrefix(id, callID(u.task, ""))
		})
	case core.ToolResult:
		u.desk.settle(func(id string) bool { return id == callID(u.task, b.ID) }) // which the agent has given up
	}
}

// showWork begins to show what the agent does in one line, where there is a person who sees it change.
func (u *turn) showWork(to string) {
	u.agent = to
	if u.reads && u.terminal != nil {
		u.progress = newProgress(u.terminal.status, func() int { width, _ := sizeOf(u.to.Err); return width }, to)
		return
	}
	u.progress = newProgress(nil, nil, to)
}

// work notes what the agent does.
func (u *turn) work(body core.Body) {
	does := ""
	switch b := body.(type) {
	case core.Assigned:
		u.agent = string(b.Agent)
	case core.ToolCall:
		does = b.Name + " " + objectOf(b.Input)
	case core.ToolState:
		return
	case core.Thinking:
		does = "thinking"
	case core.Usage:
		u.talk.mu.Lock()
		u.used = u.used.Add(b)
		u.talk.mu.Unlock()
		return
	}
	u.progress.say(u.agent, brief(does))
}

// objectOf returns what the input of a tool call is about: the first text in it.
func objectOf(input string) string {
	members, _ := membersOf(input)
	for _, m := range members {
		if len(m.value) > 0 && m.value[0] == '"' {
			return valueText(m.value)
		}
	}
	return ""
}
