package command

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

func tailCommand(io Streams) *cobra.Command {
	var color string
	c := &cobra.Command{
		Use: "tail [TASK]", Short: "Follow all tasks live, or one from its beginning", Args: cobra.MaximumNArgs(1),
		Long: `Follow all tasks live, one line per event; or one task from its beginning to its end.
An interrupt ends the command, not the tasks. With --wait it continues after a cut, and
misses and repeats nothing.`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print every event as a line of JSON")
	f.StringVar(&color, "color", "auto", "`when` to colour: auto (on a terminal, unless NO_COLOR is set), always or never")
	wait := waitFlag(f, "a hub")
	c.ValidArgsFunction = inOrder(fromHub(to, taskIDs))
	completeFlag(c, "color", fixed("auto", "always", "never"))
	c.RunE = func(c *cobra.Command, args []string) error {
		if color != "auto" && color != "always" && color != "never" {
			return usagef("--color %q: use auto, always or never", color)
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		several := len(args) == 0
		t := newTailer(io.Out, color == "always" || color == "auto" && colors(io.Out), several)
		f := following{to: to, wait: *wait, several: several, path: "/v1/events", take: func(l client.Line, raw []byte) error {
			if to.json {
				_, err := fmt.Fprintln(io.Out, jsonText(raw))
				return err
			}
			return t.print(l)
		}}
		f.waiting = func(err error) {
			fmt.Fprintf(io.Err, "[waiting up to %s: %s]\n", config.FormatTime(*wait), inLine(err))
		}
		then := "run 'dragoman tail' again once it is back"
		if len(args) == 1 {
			if err := checkWait(c, args, "the task"); err != nil {
				return err
			}
			id, err := findTask(ctx, to.client(), args[0])
			if err != nil {
				return err
			}
			f.path = client.TaskPath(id, "events")
			then = client.TailHint(id)
		}
		return f.toEnd(ctx, then)
	}
	return c
}

// tailPause is how long dragoman tail waits at least before it continues a stream that was cut off.
const tailPause = 200 * time.Millisecond

// following reads a stream of events over several connections.
type following struct {
	to      *hubFlags
	wait    time.Duration
	waiting func(error) // is told why it waits
	several bool        // the stream is that of all tasks
	path    string
	take    func(l client.Line, raw []byte) error
	begun   func() error // is called once a connection is there, before its first line; nil for nothing
	at      string       // where to continue
	over    bool         // there is nothing more to follow
}

// toEnd follows the stream to its end, over cuts if it may wait. then says how to go on after one if it may not.
func (f *following) toEnd(ctx context.Context, then string) error {
	for {
		err := f.follow(ctx)
		switch cut := err == nil || client.IsCut(err); {
		case ctx.Err() != nil:
			return &exit{ExitInterrupted, errQuiet}
		case f.over:
			return nil
		case !cut || f.wait <= 0:
			return client.CutOff(err, then)
		}
		select {
		case <-time.After(tailPause):
		case <-ctx.Done():
		}
	}
}

// follow reads the stream until it ends. It waits for the hub if that is not running.
func (f *following) follow(ctx context.Context) error {
	path := f.path
	if f.at != "" {
		path += "?from=" + url.QueryEscape(f.at)
	}
	var resp *http.Response
	err := client.NewRetry(f.wait, client.IsNoHub, f.waiting).Do(ctx, func() (err error) {
		resp, err = f.to.client().Do(ctx, http.MethodGet, path, client.NDJSON, nil) //nolint:bodyclose // it is closed below
		return err
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if f.at == "" {
		f.at = resp.Header.Get("Last-Event-ID")
	}
	if resp.StatusCode == http.StatusNoContent { // the task has ended, and its end was read
		f.over = true
	}
	if f.begun != nil {
		if err := f.begun(); err != nil {
			return err
		}
	}
	return client.Follow(resp, func(l client.Line, raw []byte) error {
		switch {
		case f.several && l.ID != "":
			f.at = l.ID
		case !f.several && l.Body != nil:
			f.at, f.over = l.Cursor.String(), f.over || l.Body.Kind().Ends()
		}
		return f.take(l, raw)
	})
}

// tailer prints one line per event.
type tailer struct {
	out      io.Writer
	colored  bool
	several  bool // each line names its task
	streamed map[core.TaskID]*maphash.Hash
}

func newTailer(out io.Writer, colored, several bool) *tailer {
	return &tailer{out, colored, several, map[core.TaskID]*maphash.Hash{}}
}

// seed makes hashes of texts comparable.
var seed = maphash.MakeSeed()

// repeated reports whether an end repeats the text that was streamed. It keeps one hash per
// running task.
func (t *tailer) repeated(l client.Line) bool {
	h := t.streamed[l.Task]
	switch b := l.Body.(type) {
	case core.Text:
		if h == nil {
			h = new(maphash.Hash)
			h.SetSeed(seed)
			t.streamed[l.Task] = h
		}
		_, _ = h.WriteString(b.Text) // it never fails
	case core.Done:
		delete(t.streamed, l.Task)
		return h != nil && h.Sum64() == maphash.String(seed, b.Text)
	case core.Failed, core.Cancelled:
		delete(t.streamed, l.Task)
	}
	return false
}

// The colours of a terminal.
const (
	plainColor = "\x1b[0m"
	red        = "\x1b[31m"
	green      = "\x1b[32m"
	yellow     = "\x1b[33m"
	cyan       = "\x1b[36m"
	dim        = "\x1b[2m"
)

func (t *tailer) print(l client.Line) error {
	of := ""
	if t.several {
		of = " " + visible(string(l.Task))
	}
	switch {
	case l.Gap != nil:
		_, err := fmt.Fprintf(t.out, "-- %s\n", missingOf(l.Gap, t.several))
		return err
	case l.Shutdown != nil:
		_, err := fmt.Fprintf(t.out, "-- the hub is stopping: %s\n", visible(l.Shutdown.Reason))
		return err
	}
	k, text := l.Body.Kind(), summary(l.Body)
	if d, ok := l.Body.(core.Done); t.repeated(l) && ok {
		text = brief(string(d.Data))
	}
	rest := t.paint(colorOf(k), fmt.Sprintf("%-18s", k)) + " " + text
	_, err := fmt.Fprintf(t.out, "%s%s %4d %s\n", t.paint(dim, l.At.Local().Format("15:04:05.000")), of, l.Seq, strings.TrimRight(rest, " "))
	return err
}

// missingOf describes a gap, in the stream of several tasks or of one.
func missingOf(g *client.Gap, several bool) string {
	of := ""
	if several && g.Task != "" {
		of = " of task " + visible(string(g.Task))
	}
	switch {
	case g.After != "":
		return "tasks after " + visible(string(g.After)) + " may be missing: 'dragoman tasks' lists those that are kept"
	case g.To == 0:
		return fmt.Sprintf("events from %d on%s are no longer kept", g.From, of)
	}
	return fmt.Sprintf("events %d to %d%s are no longer kept", g.From, g.To, of)
}

func (t *tailer) paint(color, text string) string {
	if !t.colored || color == "" {
		return text
	}
	return color + text + plainColor
}

func colorOf(k core.Kind) string {
	switch k {
	case core.KindDone:
		return green
	case core.KindFailed:
		return red
	case core.KindCancelled, core.KindCancelRequested, core.KindRetrying, core.KindApprovalRequested, core.KindQuestionAsked:
		return yellow
	case core.KindText:
		return cyan
	case core.KindThinking, core.KindUsage:
		return dim
	}
	return ""
}

// summary describes an event in one line.
func summary(body core.Body) string {
	s := ""
	switch b := body.(type) {
	case core.Opened:
		s = fmt.Sprintf("%s %s %s: %s", b.From.ID, b.Request.Intent, b.Request.To, b.Request.Content)
		if b.Request.Notice != nil {
			s = fmt.Sprintf("%s notifies %s: %s %s", b.From.ID, b.Request.To, b.Request.Notice.Topic, b.Request.Notice.Data)
		}
	case core.Assigned:
		s = fmt.Sprintf("to %s, attempt %d", b.Agent, b.Attempt)
		if b.Handover != nil {
			s += ", " + b.Handover.Words()
		}
	case core.Accepted:
		if b.Estimate > 0 {
			s = "within " + b.Estimate.String()
		}
	case core.SessionStarted:
		s = b.Session
	case core.SessionLost:
		s = b.Reason
	case core.Thinking:
		s = b.Text
	case core.Text:
		s = b.Text
	case core.ToolCall:
		s = callOf(b) + " " + b.Name + " " + b.Input
	case core.ToolState:
		s = b.ID + " " + b.State.String() + " " + b.Detail
	case core.ToolResult:
		s = b.ID + " " + b.Output
	case core.ApprovalRequested:
		s = b.ID + " " + b.Name + " " + b.Input
	case core.ApprovalDecided:
		s = verdict(b)
	case core.QuestionAsked:
		s = b.ID + " " + b.Text
		for _, o := range b.Options {
			s += " [" + o.Label + "]"
		}
	case core.QuestionAnswered:
		if s = b.ID + " " + b.Words(); b.By != "" {
			s += " by " + b.By
		}
	case core.Injected:
		if s = b.Content; b.Source != "" {
			s = b.Attribution() + ": " + s
		}
	case core.InjectionAnswered:
		s = fmt.Sprintf("%s accepted=%t %s", b.ID, b.Accepted, b.Reason)
	case core.File:
		s = fmt.Sprintf("%s %s %d bytes", b.Name, b.MediaType, len(b.Data))
	case core.Usage:
		if s = fmt.Sprintf("input %d, output %d, thinking %d", b.Input, b.Output, b.Thinking); b.Model != "" {
			s += " of " + b.Model
		}
		if b.Cost.Known() {
			s += ", cost " + b.Cost.String()
		}
	case core.Retrying:
		s = fmt.Sprintf("%s failed: %s", b.Agent, b.Fault.Message)
	case core.CancelRequested:
		s = "by " + b.By + " " + b.Reason
	case core.ForeignFrame:
		s = b.Dialect + " " + b.Name
	case core.Done:
		s = b.Text + string(b.Data)
	case core.Failed:
		s = string(b.Fault.Code) + ": " + b.Fault.Message
	case core.Cancelled:
		s = b.Reason
	}
	return brief(s)
}

// callOf returns the id of a tool call, with that of the call that it is a part of.
func callOf(b core.ToolCall) string {
	if b.Parent == "" {
		return b.ID
	}
	return b.ID + " below " + b.Parent
}
