package command

import (
	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
)

func againCommand(io Streams) *cobra.Command {
	var thinking, noInput bool
	c := &cobra.Command{
		Use: "again [TASK]", Short: "Ask again what a task asked", Args: cobra.MaximumNArgs(1),
		Long: `Ask again what a task asked: the same words, data and files, of the same address and in the
same conversation. Without TASK it is your last task. It is a new task, which is shown as
'dragoman ask' shows one; the old one stays as it ended, with the questions that nobody
answered.`,
		Example: `  dragoman again
  dragoman again 3f9a1c`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print every event as a line of JSON")
	f.BoolVar(&thinking, "thinking", false, "print the agent's thinking and tool calls on stderr")
	noInputFlag(f, &noInput)
	c.ValidArgsFunction = inOrder(fromHub(to, taskIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		given := lastTask
		if len(args) == 1 {
			given = args[0]
		}
		id, err := findTask(c.Context(), to.client(), given)
		if err != nil {
			return err
		}
		keep := false
		return ask(c.Context(), to, client.TaskRequest{Again: id, Keep: &keep}, 0, thinking, noInput)
	}
	return c
}
