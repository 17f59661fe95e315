package command

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func tasksCommand(io Streams) *cobra.Command {
	var q client.TaskQuery
	var readers bool
	c := &cobra.Command{
		Use: "tasks [ID]", Short: "List the tasks of the hub, or show one", Args: cobra.MaximumNArgs(1),
		Long: `List running and ended tasks, the newest first; or show the request, the state and the
answer of one. An id may be any unique beginning or ending of it, or 'last', your own last
task; a terminal shows the shortest endings, and whole ids with -o wide, which also says why a task failed in
its own words. For a task that no agent has taken, the list shows its address in parentheses: (shout).
'dragoman tail ID' shows every event of a task; --readers lists its readers.`,
		Example: `  dragoman tasks --state failed
  dragoman tasks 0198f3c2-...
  dragoman tasks 0198f3c2-... --readers`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	addOutputFlag(c, to)
	f.StringVar(&q.State, "state", "", "only tasks in this `state`: "+strings.Join(task.States, ", "))
	f.StringVar(&q.Agent, "agent", "", "only tasks of the agent with this `id`, and those addressed to it that no agent has taken")
	f.StringVar(&q.From, "from", "", "only tasks of the principal with this `id`")
	f.StringVar(&q.Thread, "thread", "", "only tasks of this `thread`")
	f.StringVar(&q.Cause, "cause", "", "only tasks that were asked by who worked on the one with this `id`")
	f.StringVar(&q.Before, "before", "", "only tasks older than the one with this `id`")
	f.IntVar(&q.Limit, "limit", task.DefaultListed, "maximum `number` of tasks; 0 for all")
	f.BoolVar(&readers, "readers", false, "list the readers of the task and how far each has read")
	c.ValidArgsFunction = inOrder(fromHub(to, taskIDs))
	completeFlag(c, "agent", fromHub(to, agentIDs))
	completeFlag(c, "state", fixed(task.States...))
	completeFlag(c, "from", fromHub(to, requesterIDs))
	completeFlag(c, "thread", fromHub(to, threadIDs))
	completeFlag(c, "cause", fromHub(to, taskIDs))
	completeFlag(c, "before", fromHub(to, taskIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			if err := refuseFlags(c, "with an ID", "state", "agent", "from", "thread", "cause", "before", "limit"); err != nil {
				return err
			}
		}
		switch {
		case readers && len(args) == 0:
			return usagef("--readers: name the task: 'dragoman tasks ID --readers'")
		case len(args) == 1:
			return showOne(c.Context(), to, args[0], readers)
		}
		if err := checkListFlags(q.State, q.Limit); err != nil {
			return err
		}
		p := startProgress(io.Err, "reading the tasks")
		defer p.end()
		list, err := to.client().Tasks(c.Context(), q)
		p.end()
		if err != nil {
			return err
		}
		rows := make([]taskRow, len(list.Tasks))
		for i, raw := range list.Tasks {
			if err := json.Unmarshal(raw, &rows[i]); err != nil {
				return err
			}
		}
		heads := []string{"TASK", "STATE", "AGENT", "FROM", "OPENED", "CONTENT"}
		if to.wide {
			heads = slices.Insert(heads, 2, "FAULT")
		}
		short := to.shortened(idsOf(rows, func(v taskRow) string { return string(v.ID) }))
		err = printList(to, list, rows, "no tasks match: 'dragoman tasks' lists the latest", heads, func(v taskRow) []string {
			row := []string{short(string(v.ID)), v.stateText(to.wide), v.addressee(), orDash(v.From.ID), openedAt(to, v), orDash(brief(v.asked()))}
			if to.wide {
				row = slices.Insert(row, 2, orDash(v.fault()))
			}
			return row
		})
		tellMissing(io, list.Missing)
		tellMore(c, to, list.Before)
		return err
	}
	return c
}

// sameFlags returns the flags that were given, without some, as one writes them.
func sameFlags(given *pflag.FlagSet, without ...string) string {
	var text strings.Builder
	given.Visit(func(f *pflag.Flag) {
		if f.Value.String() != "" && !slices.Contains(without, f.Name) {
			fmt.Fprintf(&text, " --%s %s", f.Name, quoted(f.Value.String()))
		}
	})
	return text.String()
}

// showReaders prints the readers of a task.
func showReaders(ctx context.Context, to *hubFlags, id core.TaskID) error {
	readers, err := to.client().Readers(ctx, id)
	if err != nil {
		return err
	}
	heads := []string{"READER", "DIALECT", "ROLE", "SEQ", "BEHIND"}
	return printList(to, map[string]any{"readers": readers}, readers, "the task has no readers", heads, func(r task.ReaderStatus) []string {
		return []string{r.Principal.ID, orDash(r.Principal.Dialect), r.Role.String(), fmt.Sprint(r.Seq), fmt.Sprint(r.Behind)}
	})
}

// taskRow has the fields of a task that are shown.
type taskRow struct {
	ID       core.TaskID
	State    string
	Agent    core.AgentID
	Thread   core.ThreadID
	Branch   core.TaskID
	Intent   string // "" if the request is no longer kept
	To       string
	From     core.Principal
	OpenedAt time.Time `json:"opened_at"`
	Deadline time.Time
	Content  string
	Data     json.RawMessage
	Notice   *core.Notice
	Fault    *core.Fault
}

// fault returns why the task failed; "" if it did not, or nothing says why.
func (v taskRow) fault() string {
	if v.Fault == nil {
		return ""
	}
	return v.Fault.Error()
}

// stateText returns the state, of a failed task with the code of its fault unless that stands beside it.
func (v taskRow) stateText(beside bool) string {
	if v.Fault == nil || beside {
		return v.State
	}
	return v.State + " (" + string(v.Fault.Code) + ")"
}

// asked returns the request as text.
func (v taskRow) asked() string {
	switch {
	case v.Notice != nil:
		return strings.TrimSpace(v.Notice.Topic + " " + string(v.Notice.Data))
	case v.Content == "":
		return string(v.Data)
	}
	return v.Content
}

// addressee returns the agent of the task; in parentheses the address that was asked, if none has taken it.
func (v taskRow) addressee() string {
	if v.Agent == "" && v.To != "" {
		return "(" + v.To + ")"
	}
	return orDash(string(v.Agent))
}

func (v taskRow) opened() string {
	if v.OpenedAt.IsZero() {
		return "-"
	}
	return v.OpenedAt.Local().Format("2006-01-02 15:04:05")
}

// showOne prints the task that a person means, or its readers.
func showOne(ctx context.Context, to *hubFlags, given string, readers bool) error {
	id, err := findTask(ctx, to.client(), given)
	switch {
	case err != nil:
		return err
	case readers:
		return showReaders(ctx, to, id)
	}
	return showTask(ctx, to, string(id))
}

// openedAt returns when a task was opened: at a terminal without what one knows.
func openedAt(to *hubFlags, v taskRow) string {
	at := v.OpenedAt.Local()
	switch {
	case v.OpenedAt.IsZero(), !to.fits():
		return v.opened()
	case at.Format(time.DateOnly) == time.Now().Format(time.DateOnly):
		return at.Format(time.TimeOnly)
	}
	return at.Format("Jan _2 15:04")
}

// showTask prints one task.
func showTask(ctx context.Context, to *hubFlags, id string) error {
	var raw json.RawMessage
	if err := to.client().Get(ctx, "/v1/tasks/"+url.PathEscape(id), &raw); err != nil {
		return err
	}
	if to.json {
		return printJSON(to.Out, raw)
	}
	var v struct {
		taskRow
		Answer struct {
			Text  string
			Data  json.RawMessage
			Fault *core.Fault
		}
	}
	if err := json.Unmarshal(raw, &v); err != nil {
		return err
	}
	t := newTable(to.Out, "TASK", string(v.ID))
	t.row("STATE", v.State)
	t.row("AGENT", orDash(string(v.Agent)))
	t.row("FROM", orDash(v.From.ID))
	t.row("TO", orDash(v.To))
	t.row("INTENT", orDash(v.Intent))
	t.row("THREAD", orDash(string(v.Thread)))
	if v.Branch != "" {
		t.row("BRANCH OF", string(v.Branch))
	}
	t.row("OPENED", v.opened())
	if v.Answer.Fault != nil {
		t.row("FAULT", v.Answer.Fault.Error())
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, part := range []struct{ head, text string }{{"ASKED", v.asked()}, {"ANSWER", v.Answer.Text}, {"DATA", string(v.Answer.Data)}} {
		if part.text != "" {
			fmt.Fprintf(to.Out, "\n%s\n%s\n", part.head, visibleLines(strings.TrimRight(part.text, "\n")))
		}
	}
	return nil
}
