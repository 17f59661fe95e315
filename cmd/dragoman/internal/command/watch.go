package command

import (
	"context"
	"fmt"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/lru"
)

func watchCommand(io Streams) *cobra.Command {
	var notify bool
	c := &cobra.Command{
		Use: "watch", Short: "Follow what waits for a person, and what ends", Args: cobra.NoArgs,
		Long: `Follow what waits for a person and what ends, in one line each: tool calls that want
approval, questions, and tasks that are done, failed or cancelled; what waits already comes
first. 'dragoman approve' and 'dragoman answer' decide. It takes the right to follow all
tasks, waits for a hub that is not there, goes on after a restart of it, and ends by an
interrupt.

--notify rings the bell of the terminal for each line, and shows a notification on the
desktop by notify-send (Linux, BSD) or osascript (macOS), where that is installed; on
Windows there is the bell alone. A notification names the agent and the tool, and has
nothing that an agent has said.`,
		Example: `  dragoman watch --notify`,
	}
	to := addHubFlags(c.Flags(), io, "")
	c.Flags().BoolVar(&notify, "notify", false, "ring the bell, and notify on the desktop")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		w := &watcher{to: to, hub: to.client(), waits: map[string]string{}, tasks: lru.New(lru.Options[core.TaskID, watched]{Count: mostWatched})}
		if notify {
			w.desktop = startDesktop(io.Err)
			defer w.desktop.end()
		}
		f := following{
			to: to, wait: watchWait, several: true, path: "/v1/events",
			begun:   func() error { return w.begun(ctx) },
			take:    func(l client.Line, _ []byte) error { return w.take(ctx, l) },
			waiting: func(err error) { fmt.Fprintf(io.Err, "[waiting for the hub: %s]\n", inLine(err)) },
		}
		return f.toEnd(ctx, "")
	}
	return c
}

const (
	// watchWait is how long dragoman watch waits for a hub: longer than anybody does.
	watchWait = 10 * 365 * 24 * time.Hour
	// mostWatched is of how many tasks it remembers who works on what; the hub is asked about others.
	mostWatched = 4096
)

// watched is who works on what.
type watched struct {
	who, asked string
	notice     bool
}

// watcher tells what waits for a person, and what ends.
type watcher struct {
	to      *hubFlags
	hub     *client.Client
	desktop *desktop // nil for none
	// waits has what was told and waits still, by callID, each with the input that it is about. A question has its id
	// in place of that of a call.
	waits map[string]string
	tasks *lru.Cache[core.TaskID, watched]
}

// begun tells what waits already, once a connection to the hub is there.
func (w *watcher) begun(ctx context.Context) error {
	approvals, err := w.hub.Approvals(ctx)
	if err != nil {
		return err
	}
	var questions questionList
	if err := w.hub.Get(ctx, "/v1/questions", &questions); err != nil {
		return err
	}
	tellMissing(w.to.Streams, append(approvals.Missing, questions.Missing...))
	before := w.waits
	w.waits = map[string]string{}
	for _, a := range approvals.Approvals {
		w.keep(before, callID(a.Task, a.ID))
		if err := w.approval(ctx, a.Since, a.Task, core.ApprovalRequested{ID: a.ID, Name: a.Name, Input: a.Input, InputSHA256: a.InputSHA256}); err != nil {
			return err
		}
	}
	for _, q := range questions.Questions {
		for _, id := range q.Tasks {
			w.keep(before, callID(id, q.ID))
			if err := w.question(ctx, q.Since, id, q.Event()); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep takes over what was told before.
func (w *watcher) keep(before map[string]string, key string) {
	if about, told := before[key]; told {
		w.waits[key] = about
	}
}

// take takes a line of the stream of all tasks. Of what a gap leaves out, that which still waits was listed.
func (w *watcher) take(ctx context.Context, l client.Line) error {
	if l.Gap != nil {
		fmt.Fprintf(w.to.Err, "[%s]\n", missingOf(l.Gap, true))
	}
	switch b := l.Body.(type) {
	case core.Opened:
		r := taskRow{Content: b.Request.Content, Data: b.Request.Data, Notice: b.Request.Notice, To: b.Request.To.String()}
		w.tasks.Put(l.Task, watchedIn(r))
	case core.Assigned:
		of := w.task(ctx, l.Task)
		of.who = string(b.Agent)
		w.tasks.Put(l.Task, of)
	case core.ApprovalRequested:
		return w.approval(ctx, l.At, l.Task, b)
	case core.QuestionAsked:
		return w.question(ctx, l.At, l.Task, b)
	case core.ApprovalDecided:
		w.settle(l.Task, func(call string) bool { return b.All || call == b.ID })
	case core.QuestionAnswered:
		w.settle(l.Task, func(call string) bool { return call == b.ID })
	case core.ToolResult: // the agent has given it up
		w.settle(l.Task, func(call string) bool { return call == b.ID })
	case core.Done, core.Failed, core.Cancelled:
		return w.end(ctx, l)
	}
	return nil
}

// settle forgets the calls and questions of a task that wait no more.
func (w *watcher) settle(id core.TaskID, is func(call string) bool) {
	for key := range w.waits {
		if call, of := strings.CutPrefix(key, callID(id, "")); of && is(call) {
			delete(w.waits, key)
		}
	}
}

// approval tells that a call waits for approval.
func (w *watcher) approval(ctx context.Context, at time.Time, id core.TaskID, a core.ApprovalRequested) error {
	if !w.isNew(callID(id, a.ID), a.InputSHA256) {
		return nil
	}
	who := w.task(ctx, id).who
	return w.tell(at, id, who, "waits for approval of "+oneLine(a.Name)+": "+brief(a.Input), "Waits for approval: "+who+", "+a.Name)
}

// question tells that an agent asks.
func (w *watcher) question(ctx context.Context, at time.Time, id core.TaskID, q core.QuestionAsked) error {
	if !w.isNew(callID(id, q.ID), "") {
		return nil
	}
	who, text := w.task(ctx, id).who, q.Text
	for _, o := range q.Options {
		text += " [" + o.Label + "]"
	}
	return w.tell(at, id, who, "asks: "+brief(text), "Asks a question: "+who)
}

// isNew notes that something waits, and reports whether that was not told.
func (w *watcher) isNew(key, about string) bool {
	told, known := w.waits[key]
	w.waits[key] = about
	return !known || told != about
}

// end tells how a task has ended.
func (w *watcher) end(ctx context.Context, l client.Line) error {
	w.settle(l.Task, func(string) bool { return true })
	of := w.task(ctx, l.Task)
	w.tasks.Remove(l.Task)
	switch b := l.Body.(type) {
	case core.Failed:
		return w.tell(l.At, l.Task, of.who, "failed: "+brief(b.Fault.Error()), "Failed: "+of.who)
	case core.Cancelled:
		return w.tell(l.At, l.Task, of.who, "was cancelled"+brief(because(b.Reason)), "Cancelled: "+of.who)
	}
	if of.notice {
		return nil // it was delivered, and nothing was to be done
	}
	return w.tell(l.At, l.Task, of.who, "is done: "+of.asked, "Done: "+of.who)
}

// tell prints a line, and notifies with other words of at most one line, which the desktop shows as they are.
func (w *watcher) tell(at time.Time, id core.TaskID, who, what, words string) error {
	short := w.to.shortened([]string{string(id)})
	_, err := fmt.Fprintf(w.to.Out, "%s %s %s %s\n", at.Local().Format(time.TimeOnly), visible(short(string(id))), oneLine(who), what)
	if w.desktop != nil {
		w.desktop.notify(words)
	}
	return err
}

// task returns who works on what, which the hub is asked if the stream has not told it.
func (w *watcher) task(ctx context.Context, id core.TaskID) watched {
	if of, known := w.tasks.Get(id); known {
		return of
	}
	var row taskRow
	_ = w.hub.Get(ctx, "/v1/tasks/"+url.PathEscape(string(id)), &row) // which may not be kept
	of := watchedIn(row)
	w.tasks.Put(id, of)
	return of
}

func watchedIn(row taskRow) watched {
	return watched{who: row.addressee(), asked: brief(row.asked()), notice: row.Notice != nil}
}
