package command

import (
	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func delegateCommand(io Streams) *cobra.Command {
	var a client.TaskRequest
	var background string
	c := &cobra.Command{
		Use: "delegate TO [WORD...]", Short: "Give an agent a task without waiting for its end",
		Long: `Give an agent a task and print the id of the task at once. 'dragoman tail ID' follows
the task.

Without words, or with "-" or @-, the task is read from stdin; @FILE, as the only word, reads a
file. A task that begins with @ is written with @@. --background takes @FILE and @- too.`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	c.ValidArgsFunction = withContent(fromHub(to, addressees))
	f.StringVar(&a.Thread, "thread", "", "`id` of the conversation to continue")
	f.StringVar(&background, "background", "", "`JSON` object with context for the agent, or @file")
	timeout := timeFlag(f, "timeout", 0, "`time` that the task may take, such as 20s; default: the hub's setting")
	options := optionFlag(f, "the agent is set to for this task")
	completeFlag(c, "thread", fromHub(to, threadIDs))
	completeFlag(c, "background", completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := refuseEmpty(c, "thread", "background"); err != nil {
			return err
		}
		a.To, a.Intent = args[0], "delegate"
		if a.Options, err = optionsOf(*options); err != nil {
			return err
		}
		if a.DeadlineMS, err = deadline(c, *timeout); err != nil {
			return err
		}
		if a.Content, err = contentBeside("background", background, args[1:], io.In); err != nil {
			return err
		}
		if a.Content == "" && background == fromStdin {
			return usagef("--background %s: stdin is the background, so that the task is missing: write it on the command line, or name its file with @FILE", fromStdin)
		}
		if background != "" {
			if a.Context, err = jsonOf(background, "--background", io.In); err != nil {
				return err
			}
		}
		hub := to.client()
		if err := noteThread(c.Context(), hub, a.Thread, io.Err); err != nil {
			return err
		}
		var answer struct {
			ID      core.TaskID   `json:"id"`
			Thread  core.ThreadID `json:"thread"`
			Receipt core.Receipt  `json:"receipt"`
		}
		if err := hub.Post(c.Context(), "/v1/tasks", a, &answer); err != nil {
			return err
		}
		return to.print(answer, string(answer.ID))
	}
	return c
}
