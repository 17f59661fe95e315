package command

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func threadsCommand(io Streams) *cobra.Command {
	var state, agent, before string
	var limit int
	c := &cobra.Command{
		Use: "threads", Short: "List the conversations", Args: cobra.NoArgs,
		Long: `List the conversations, the one with the newest task first: the state of its latest task,
the agents of its latest tasks, and its title, which is the beginning of what was asked
first. 'dragoman tasks --thread ID' lists the tasks of one, 'dragoman ask --thread ID'
continues it.`,
		Example: `  dragoman threads --agent claude
  dragoman threads --state failed`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	f.StringVar(&state, "state", "", "only conversations whose latest task is in this `state`: "+strings.Join(task.States, ", "))
	f.StringVar(&agent, "agent", "", "only conversations with the agent of this `id` among their latest tasks")
	f.StringVar(&before, "before", "", "only conversations that come after the one whose latest task has this `id`")
	f.IntVar(&limit, "limit", task.DefaultListed, "maximum `number` of conversations; 0 for all")
	completeFlag(c, "state", fixed(task.States...))
	completeFlag(c, "agent", fromHub(to, agentIDs))
	completeFlag(c, "before", fromHub(to, taskIDs))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := checkListFlags(state, limit); err != nil {
			return err
		}
		p := startProgress(io.Err, "reading the conversations")
		defer p.end()
		list, err := to.client().Threads(c.Context(), hub.ThreadFilter{State: state, Agent: core.AgentID(agent), Before: core.TaskID(before), Limit: limit})
		p.end()
		if err != nil {
			return err
		}
		if err := printThreads(to, list); err != nil {
			return err
		}
		tellMissing(io, list.Missing)
		tellMore(c, to, list.Before)
		return nil
	}
	return c
}

func printThreads(to *hubFlags, list hub.ThreadPage) error {
	switch {
	case to.json:
		return printJSON(to.Out, list)
	case len(list.Threads) == 0:
		fmt.Fprintln(to.Err, "no conversations match: 'dragoman threads' lists the latest")
		return nil
	}
	rows := make([][]string, len(list.Threads))
	for i, t := range list.Threads {
		agents := make([]string, len(t.Agents))
		for n, id := range t.Agents {
			agents[n] = string(id)
		}
		rows[i] = []string{string(t.ID), t.State, orDash(strings.Join(agents, ",")), shortTime(t.OpenedAt, time.Now()), orDash(t.Title)}
	}
	return printRows(to, []string{"THREAD", "STATE", "AGENTS", "LAST", "TITLE"}, rows, "LAST", "AGENTS")
}

// checkListFlags returns a usage error for --state and --limit of a list that cannot be those.
func checkListFlags(state string, limit int) error {
	switch {
	case state != "" && !slices.Contains(task.States, state):
		return usagef("--state %q: use one of %s", state, strings.Join(task.States, ", "))
	case limit < 0:
		return usagef("--limit %d: want 0 (all) or more", limit)
	}
	return nil
}

// tellMore says how the next page of a list is printed, if there is one.
func tellMore(c *cobra.Command, to *hubFlags, before core.TaskID) {
	if before == "" || to.json {
		return
	}
	words := ""
	for _, arg := range c.Flags().Args() {
		words += " " + quoted(arg)
	}
	fmt.Fprintf(to.Err, "there are more: '%s%s%s --before %s' lists them\n", c.CommandPath(), words, sameFlags(c.Flags(), "before", "token"), quoted(string(before)))
}
