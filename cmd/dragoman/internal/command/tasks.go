package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func tasksCommand(io Streams) *cobra.Command {
	var q client.TaskQuery
	var asJSON, readers bool
	c := &cobra.Command{
		Use: "tasks [ID]", Short: "List the tasks of the hub, or show one", Args: cobra.MaximumNArgs(1),
		Long: `List tasks, those that run and those that have ended, the newest first; or show one:
what was asked, where it stands, and what was answered. 'dragoman tail ID' shows every
event of a task, and --readers who reads it.`,
		Example: `  dragoman tasks --state failed
  dragoman tasks 0198f3c2-...
  dragoman tasks 0198f3c2-... --readers`,
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&q.State, "state", "", "only tasks in this `state`: "+strings.Join(task.States, ", "))
	f.StringVar(&q.Agent, "agent", "", "only tasks of the agent with this `id`")
	f.StringVar(&q.From, "from", "", "only tasks that the principal with this `id` asked for")
	f.StringVar(&q.Thread, "thread", "", "only tasks of this `thread`")
	f.StringVar(&q.Before, "before", "", "only tasks older than the one with this `id`")
	f.IntVar(&q.Limit, "limit", task.DefaultListed, "how `many` at most; 0 for all")
	f.BoolVar(&readers, "readers", false, "list who reads the task, and how far each has read")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	_ = c.RegisterFlagCompletionFunc("state", cobra.FixedCompletions(task.States, cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	c.RunE = func(c *cobra.Command, args []string) error {
		client := to.client()
		switch {
		case readers && len(args) == 0:
			return &exit{ExitUsage, errors.New("--readers: name the task: 'dragoman tasks ID --readers'")}
		case readers:
			return showReaders(c.Context(), io, client, core.TaskID(args[0]), asJSON)
		case len(args) == 1:
			return showTask(c.Context(), io, client, core.TaskID(args[0]), asJSON)
		case q.State != "" && !slices.Contains(task.States, q.State):
			return &exit{ExitUsage, fmt.Errorf("--state %q: use one of %s", q.State, strings.Join(task.States, ", "))}
		case q.Limit < 0:
			return &exit{ExitUsage, fmt.Errorf("--limit %d: use 0 for all, or more", q.Limit)}
		}
		list, err := client.Tasks(c.Context(), q)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(io.Out, list)
		case len(list.Tasks) == 0:
			fmt.Fprintln(io.Err, "no tasks match: 'dragoman tasks' lists the latest")
			return nil
		}
		t := newTable(io.Out, "TASK", "STATE", "AGENT", "FROM", "OPENED", "CONTENT")
		for _, raw := range list.Tasks {
			var v taskRow
			if err := json.Unmarshal(raw, &v); err != nil {
				return err
			}
			t.row(string(v.ID), v.State, orDash(string(v.Agent)), orDash(v.From.ID), v.opened(), orDash(brief(v.asked())))
		}
		if err := t.flush(); err != nil {
			return err
		}
		if list.Before != "" {
			fmt.Fprintf(io.Err, "there are more: 'dragoman tasks --before %s' lists them\n", list.Before)
		}
		return nil
	}
	return c
}

// showReaders prints who reads a task.
func showReaders(ctx context.Context, io Streams, c *client.Client, id core.TaskID, asJSON bool) error {
	readers, err := c.Readers(ctx, id)
	switch {
	case err != nil:
		return err
	case asJSON:
		return printJSON(io.Out, readers)
	case len(readers) == 0:
		fmt.Fprintln(io.Err, "nobody reads the task")
		return nil
	}
	t := newTable(io.Out, "READER", "DIALECT", "ROLE", "SEQ", "BEHIND")
	for _, r := range readers {
		t.row(r.Principal.ID, orDash(r.Principal.Dialect), r.Role.String(), fmt.Sprint(r.Seq), fmt.Sprint(r.Behind))
	}
	return t.flush()
}

// taskRow is what a line shows of a task.
type taskRow struct {
	ID       core.TaskID
	State    string
	Agent    core.AgentID
	Thread   core.ThreadID
	Intent   string // "" where the request is no longer kept
	To       string
	From     core.Principal
	OpenedAt time.Time `json:"opened_at"`
	Deadline time.Time
	Content  string
	Data     json.RawMessage
	Notice   *core.Notice
}

// asked is the request as text.
func (v taskRow) asked() string {
	switch {
	case v.Notice != nil:
		return strings.TrimSpace(v.Notice.Topic + " " + string(v.Notice.Data))
	case v.Content == "":
		return string(v.Data)
	}
	return v.Content
}

func (v taskRow) opened() string {
	if v.OpenedAt.IsZero() {
		return "-"
	}
	return v.OpenedAt.Local().Format("2006-01-02 15:04:05")
}

// showTask prints one task.
func showTask(ctx context.Context, io Streams, c *client.Client, id core.TaskID, asJSON bool) error {
	var raw json.RawMessage
	if err := c.Get(ctx, "/v1/tasks/"+url.PathEscape(string(id)), &raw); err != nil {
		return err
	}
	if asJSON {
		return printJSON(io.Out, raw)
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
	t := newTable(io.Out, "TASK", string(v.ID))
	t.row("STATE", v.State)
	t.row("AGENT", orDash(string(v.Agent)))
	t.row("FROM", orDash(v.From.ID))
	t.row("TO", orDash(v.To))
	t.row("INTENT", orDash(v.Intent))
	t.row("THREAD", orDash(string(v.Thread)))
	t.row("OPENED", v.opened())
	if v.Answer.Fault != nil {
		t.row("FAULT", v.Answer.Fault.Error())
	}
	if err := t.flush(); err != nil {
		return err
	}
	for _, part := range []struct{ head, text string }{{"ASKED", v.asked()}, {"ANSWER", v.Answer.Text}, {"DATA", string(v.Answer.Data)}} {
		if part.text != "" {
			fmt.Fprintf(io.Out, "\n%s\n%s\n", part.head, safeText(part.text))
		}
	}
	return nil
}

// safeText removes control characters from a text but keeps its lines.
func safeText(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' {
			return r
		}
		return printable(r)
	}, strings.TrimRight(text, "\n"))
}
