package command

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func approvalsCommand(io Streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "approvals", Short: "List the tool calls that wait for a person", Args: cobra.NoArgs,
		Long: `List the tool calls that wait for a person to decide, the longest waiting first.
'dragoman approve' and 'dragoman deny' decide; the first answer counts, whoever
gives it. A call that nobody decides on in time is denied.`,
	}
	f := c.Flags()
	to := hubFlags(f)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		all, err := to.client().Approvals(c.Context())
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(io.Out, map[string]any{"approvals": all})
		case len(all) == 0:
			fmt.Fprintln(io.Err, "nothing waits for a decision")
			return nil
		}
		t := newTable(io.Out, "TASK", "CALL", "AGENT", "ASKED BY", "LEFT", "TOOL", "INPUT")
		for _, a := range all {
			t.row(string(a.Task), a.ID, string(a.Agent), a.From.ID, time.Until(a.Until).Round(time.Second).String(), a.Name, brief(a.Input))
		}
		return t.flush()
	}
	return c
}

func approveCommand(io Streams) *cobra.Command {
	var all bool
	c := decision(io, true, &all)
	c.Use, c.Short = "approve TASK [CALL]", "Approve a tool call that waits for a person"
	c.Long = `Approve a tool call that waits for a person, or with --all every call of the task,
those to come included. CALL may be left out where only one waits in the task;
'dragoman approvals' lists both.`
	c.Flags().BoolVar(&all, "all", false, "approve every tool of the task from now on")
	return c
}

func denyCommand(io Streams) *cobra.Command {
	c := decision(io, false, new(bool))
	c.Use, c.Short = "deny TASK [CALL]", "Deny a tool call that waits for a person"
	c.Long = `Deny a tool call that waits for a person. The task goes on without it. CALL may be
left out where only one waits in the task; 'dragoman approvals' lists both.`
	return c
}

// decision is the command approve or deny.
func decision(io Streams, approved bool, all *bool) *cobra.Command {
	var reason string
	var asJSON bool
	c := &cobra.Command{Args: cobra.RangeArgs(1, 2)}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&reason, "reason", "", "`text` that says why, for whoever reads the task")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		at, task := to.client(), core.TaskID(args[0])
		call := ""
		if len(args) > 1 {
			call = args[1]
		} else {
			waiting, err := at.Approvals(c.Context())
			if err == nil {
				call, err = theCall(waiting, task, *all)
			}
			if errors.Is(err, errNothingWaits) {
				var known struct{ State string }
				if unknown := at.Get(c.Context(), "/v1/tasks/"+url.PathEscape(args[0]), &known); unknown != nil {
					err = unknown
				}
			}
			if err != nil {
				return err
			}
		}
		var d core.ApprovalDecided
		body := map[string]any{"id": call, "approved": approved, "all": *all, "reason": reason}
		if err := at.Post(c.Context(), client.TaskPath(task, "decisions"), body, &d); err != nil {
			return err
		}
		if asJSON {
			return printJSON(io.Out, d)
		}
		_, err := fmt.Fprintln(io.Out, verdict(d))
		return err
	}
	return c
}

var errNothingWaits = errors.New("nothing of the task waits for a decision: 'dragoman approvals' lists what does")

// theCall is the call that is decided on if none is named: the only one that waits in the
// task, or with all any of them.
func theCall(waiting []task.PendingApproval, task core.TaskID, all bool) (string, error) {
	var calls []string
	for _, a := range waiting {
		if a.Task == task {
			calls = append(calls, quoted(a.ID))
			if all {
				return a.ID, nil
			}
		}
	}
	switch len(calls) {
	case 0:
		return "", errNothingWaits
	case 1:
		for _, a := range waiting {
			if a.Task == task {
				return a.ID, nil
			}
		}
	}
	return "", &exit{ExitUsage, fmt.Errorf("several calls of the task wait: name one of %s", strings.Join(calls, ", "))}
}

// verdict formats a decision as one line.
func verdict(d core.ApprovalDecided) string {
	word := "denied"
	if d.Approved {
		word = "approved"
	}
	what := d.ID
	if d.All {
		what += " and all other tools of the task"
	}
	return what + " " + word + " by " + d.By + because(d.Reason)
}

// because formats a reason, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
