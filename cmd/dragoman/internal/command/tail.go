package command

import (
	"fmt"
	"hash/maphash"
	"io"
	"net/http"
	"net/url"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func tailCommand(io Streams) *cobra.Command {
	var color string
	c := &cobra.Command{
		Use: "tail [TASK]", Short: "Follow all tasks live, or one from its beginning", Args: cobra.MaximumNArgs(1),
		Long: `Follow all tasks live, one line per event; or one task from its beginning to its end.
An interrupt ends the command, not the tasks.`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print every event as a line of JSON")
	f.StringVar(&color, "color", "auto", "`when` to colour: auto (on a terminal, unless NO_COLOR is set), always or never")
	c.RunE = func(c *cobra.Command, args []string) error {
		if color != "auto" && color != "always" && color != "never" {
			return usagef("--color %q: use auto, always or never", color)
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		path := "/v1/events"
		if len(args) == 1 {
			path = "/v1/tasks/" + url.PathEscape(args[0]) + "/events"
		}
		resp, err := to.client().Do(ctx, http.MethodGet, path, client.NDJSON, nil)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		t := newTailer(io.Out, color == "always" || color == "auto" && colors(io.Out), len(args) == 0)
		ended := false
		err = client.Follow(resp, func(l client.Line, raw []byte) error {
			ended = ended || l.Body != nil && l.Body.Kind().Ends()
			if to.json {
				_, err := fmt.Fprintln(io.Out, jsonText(raw))
				return err
			}
			return t.print(l)
		})
		switch {
		case ctx.Err() != nil:
			return &exit{ExitInterrupted, errQuiet}
		case len(args) == 0:
			return client.CutOff(err, "run 'dragoman tail' again once it is back")
		case err != nil || !ended && resp.StatusCode == http.StatusOK:
			return client.CutOff(err, client.TailHint(core.TaskID(args[0])))
		}
		return nil
	}
	return c
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
		_, err := fmt.Fprintf(t.out, "-- %s\n", t.missing(l.Gap))
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

// missing describes a gap.
func (t *tailer) missing(g *client.Gap) string {
	of := ""
	if t.several && g.Task != "" {
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
	case core.KindCancelled, core.KindCancelRequested, core.KindRetrying, core.KindApprovalRequested:
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
		s = b.ID + " " + b.Name + " " + b.Input
	case core.ToolState:
		s = b.ID + " " + b.State.String() + " " + b.Detail
	case core.ToolResult:
		s = b.ID + " " + b.Output
	case core.ApprovalRequested:
		s = b.ID + " " + b.Name + " " + b.Input
	case core.ApprovalDecided:
		s = verdict(b)
	case core.Injected:
		if s = b.Content; b.Source != "" {
			s = b.Attribution() + ": " + s
		}
	case core.InjectionAnswered:
		s = fmt.Sprintf("%s accepted=%t %s", b.ID, b.Accepted, b.Reason)
	case core.File:
		s = fmt.Sprintf("%s %s %d bytes", b.Name, b.MediaType, len(b.Data))
	case core.Usage:
		s = fmt.Sprintf("input %d, output %d, thinking %d", b.Input, b.Output, b.Thinking)
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
