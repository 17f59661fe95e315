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
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/task"
)

func approvalsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "approvals", Short: "List the tool calls that wait for approval", Args: cobra.NoArgs,
		Long: `List the tool calls that wait for approval, the longest waiting first. 'dragoman
approve' and 'dragoman deny' decide; without a task they show each whole and ask. The first
decision counts. A call without a decision in time is denied.

A terminal shows the endings of ids and what fits of the input; -o wide shows all, and the
SHA-256 of the input, with which --input-sha256 decides on that input alone.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	addOutputFlag(c, to)
	c.RunE = func(c *cobra.Command, _ []string) error {
		list, err := to.client().Approvals(c.Context())
		if err != nil {
			return err
		}
		heads := []string{"TASK", "CALL", "AGENT", "ASKED BY", "LEFT", "TOOL", "INPUT"}
		if to.wide {
			heads = slices.Insert(heads, 6, "INPUT SHA-256")
		}
		short := to.shortened(idsOf(list.Approvals, func(a task.PendingApproval) string { return string(a.Task) }))
		err = printList(to, list, list.Approvals, "nothing waits for a decision", heads, func(a task.PendingApproval) []string {
			row := []string{short(string(a.Task)), a.ID, string(a.Agent), a.From.ID, timeLeft(a.Until), a.Name, visible(a.Input)}
			if to.wide {
				row = slices.Insert(row, 6, a.InputSHA256)
			}
			return row
		})
		tellMissing(io, list.Missing)
		return err
	}
	return c
}

// timeLeft formats the time until a deadline.
func timeLeft(until time.Time) string {
	return config.FormatTime(max(0, time.Until(until).Round(time.Second)))
}

func approveCommand(io Streams) *cobra.Command {
	var all bool
	c := decisionCommand(io, true, &all)
	c.Use, c.Short = "approve [TASK [CALL]]", "Approve a tool call"
	c.Long = `Approve a tool call that waits for approval, or with --all every call of the task,
later ones included. A call has to wait: nothing can be approved in advance. CALL may
be left out if only one call of the task waits; 'dragoman approvals' lists both.

At a terminal, without TASK, each call that waits is shown, and you are asked.`
	c.Flags().BoolVar(&all, "all", false, "approve the call that waits and every later one of the task")
	return c
}

func denyCommand(io Streams) *cobra.Command {
	c := decisionCommand(io, false, new(bool))
	c.Use, c.Short = "deny [TASK [CALL]]", "Deny a tool call"
	c.Long = `Deny a tool call that waits for approval. The task continues without it. CALL may be
left out if only one call of the task waits; 'dragoman approvals' lists both.

At a terminal, without TASK, each call that waits is shown, and you are asked.`
	return c
}

// decisionCommand is the command approve or deny.
func decisionCommand(io Streams, approved bool, all *bool) *cobra.Command {
	var reason, input string
	var noInput bool
	c := &cobra.Command{}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.Args = orAsked(to, &noInput, cobra.RangeArgs(1, 2))
	c.ValidArgsFunction = inOrder(fromHub(to, pendingTasks), fromHub(to, pendingCalls))
	c.Flags().StringVar(&reason, "reason", "", "`text` with the reason, which the task keeps")
	c.Flags().StringVar(&input, "input-sha256", "", "`SHA-256` of the input that you read: nothing is decided if the agent asks for another by now")
	noInputFlag(c.Flags(), &noInput)
	c.RunE = func(c *cobra.Command, args []string) error {
		hub := to.client()
		if len(args) == 0 {
			if err := refuseFlags(c, "without TASK", "input-sha256"); err != nil {
				return err
			}
			return decideCalls(c.Context(), to, decisions{hub: hub, all: *all, reason: reason, tell: true})
		}
		id, err := waitingTask(c.Context(), hub, args[0])
		if err != nil {
			return err
		}
		call := ""
		if len(args) > 1 {
			call = args[1]
		} else if call, err = pendingCall(c.Context(), hub, id, input, *all); err != nil {
			return err
		}
		d, err := decide(c.Context(), hub, id, map[string]any{"id": call, "approved": approved, "all": *all, "reason": reason}, input)
		if err != nil {
			return lookAgain(err)
		}
		return to.print(d, verdict(d))
	}
	return c
}

// waitingTask returns the id of the task that a person means among those of which a call waits. "last" is none: what is
// decided has to be named.
func waitingTask(ctx context.Context, hub *client.Client, given string) (core.TaskID, error) {
	switch {
	case given == lastTask:
		return "", usagef("%s decides nothing: name the task; 'dragoman approvals' lists what waits", lastTask)
	case isWhole(given):
		return core.TaskID(given), nil
	}
	list, err := hub.Approvals(ctx)
	if err != nil {
		return "", err
	}
	id, err := named(given, idsOf(list.Approvals, func(a task.PendingApproval) string { return string(a.Task) }))
	return core.TaskID(id), err
}

// decisionArgs returns the arguments of 'dragoman approve' and 'dragoman deny' for a call with
// the input that was shown.
func decisionArgs(id core.TaskID, call, input string) string {
	args := quoted(string(id))
	if input != "" { // of an older hub there is none
		args += " --input-sha256 " + quoted(input)
	}
	if strings.HasPrefix(call, "-") { // it is no flag
		args += " --"
	}
	return args + " " + quoted(call)
}

// lookAgain says what to do about a decision that came too late, or on another input.
func lookAgain(err error) error {
	var refused client.Refusal
	if errors.As(err, &refused) && refused.Fault.Code == core.CodeConflict {
		return fmt.Errorf("%w; 'dragoman approvals' shows what waits now", err)
	}
	return err
}

// pendingCall returns the only call of a task that waits for approval, or with all any of
// them. With the SHA-256 of an input only calls with that input count.
func pendingCall(ctx context.Context, hub *client.Client, id core.TaskID, input string, all bool) (string, error) {
	pending, err := hub.Approvals(ctx)
	if err != nil {
		return "", err
	}
	var calls []string
	for _, a := range pending.Approvals {
		if a.Task == id && (input == "" || a.InputSHA256 == input) {
			calls = append(calls, a.ID)
		}
	}
	switch {
	case len(calls) == 1, len(calls) > 1 && all:
		return calls[0], nil
	case len(calls) > 1:
		for i, call := range calls {
			calls[i] = quoted(call)
		}
		return "", usagef("several calls of the task wait: name one of %s", strings.Join(calls, ", "))
	}
	var known json.RawMessage
	if err := hub.Get(ctx, "/v1/tasks/"+url.PathEscape(string(id)), &known); err != nil {
		return "", err
	}
	if len(pending.Missing) > 0 {
		return "", fmt.Errorf("no approval is waiting for this task, as far as is known without these hubs: %s; ask again once they are back", strings.Join(pending.Missing, ", "))
	}
	return "", errors.New("no approval is waiting for this task: 'dragoman approvals' lists those that are; the decision may be for somebody else")
}

// verdict formats a decision as one line.
func verdict(d core.ApprovalDecided) string {
	word := "denied"
	if d.Approved {
		word = "approved"
	}
	call := d.ID
	if d.All {
		call += " and all other tools of the task"
	}
	return call + " " + word + " by " + d.By + because(d.Reason)
}

// because formats a reason, if there is one.
func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}
