package command

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/task"
)

func searchCommand(io Streams) *cobra.Command {
	var q client.TaskQuery
	c := &cobra.Command{
		Use: "search TEXT...", Short: "Find tasks and conversations by what was said", Args: cobra.MinimumNArgs(1),
		Long: `Find the tasks in which a text was asked or answered, in upper or lower case, the newest
first, with their conversations and the text around it. Words are looked for as they stand,
with a blank between. What agents think, tools and files are not searched.`,
		Example: `  dragoman search teapot
  dragoman search "out of memory" --agent claude --state failed`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	f.StringVar(&q.State, "state", "", "only tasks in this `state`: "+strings.Join(task.States, ", "))
	f.StringVar(&q.Agent, "agent", "", "only tasks of the agent with this `id`")
	f.StringVar(&q.Thread, "thread", "", "only tasks of this `thread`")
	f.StringVar(&q.Before, "before", "", "only tasks older than the one with this `id`")
	f.IntVar(&q.Limit, "limit", task.DefaultListed, "maximum `number` of tasks; 0 for all")
	completeFlag(c, "state", fixed(task.States...))
	completeFlag(c, "agent", fromHub(to, agentIDs))
	completeFlag(c, "thread", fromHub(to, threadIDs))
	completeFlag(c, "before", fromHub(to, taskIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		if q.Text = strings.TrimSpace(strings.Join(args, " ")); q.Text == "" {
			return usagef("TEXT is empty: write what to look for, as in '%s teapot'", c.CommandPath())
		}
		if err := checkListFlags(q.State, q.Limit); err != nil {
			return err
		}
		p := startProgress(io.Err, "searching the tasks")
		defer p.end()
		list, err := to.client().Tasks(c.Context(), q)
		p.end()
		if err != nil {
			return err
		}
		if err := printFound(to, list); err != nil {
			return err
		}
		tellMissing(io, list.Missing)
		tellMore(c, to, list.Before)
		return nil
	}
	return c
}

func printFound(to *hubFlags, list client.TaskList) error {
	switch {
	case to.json:
		return printJSON(to.Out, list)
	case len(list.Tasks) == 0:
		fmt.Fprintln(to.Err, "nothing was found among the tasks that you may read: fewer words, or only a part of one, find more")
		return nil
	}
	type foundRow struct {
		taskRow
		Found string
	}
	found := make([]foundRow, len(list.Tasks))
	for i, raw := range list.Tasks {
		if err := json.Unmarshal(raw, &found[i]); err != nil {
			return err
		}
	}
	short := to.shortened(idsOf(found, func(v foundRow) string { return string(v.ID) }))
	rows := make([][]string, len(found))
	for i, v := range found {
		thread := string(v.Thread)
		if thread == string(v.ID) {
			thread = "-" // it is alone there
		}
		rows[i] = []string{short(string(v.ID)), v.State, v.addressee(), thread, shortTime(v.OpenedAt, time.Now()), oneLine(v.Found)}
	}
	return printRows(to, []string{"TASK", "STATE", "AGENT", "THREAD", "OPENED", "FOUND"}, rows, "OPENED", "AGENT", "THREAD")
}
