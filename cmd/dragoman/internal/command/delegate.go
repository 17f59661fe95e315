package command

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func delegateCommand(io Streams) *cobra.Command {
	var a client.TaskRequest
	var about string
	var asJSON bool
	c := &cobra.Command{
		Use: "delegate TO [WORD...]", Short: "Give an agent a task and do not wait for it",
		Long: `Give an agent a task and print the id of the task at once. The task runs on by
itself; 'dragoman tail ID' follows it.`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&a.Thread, "thread", "", "`id` of the conversation to go on with")
	f.StringVar(&about, "context", "", "`JSON` object that the agent should know")
	timeout := timeFlag(f, "timeout", 0, "`time` that it may take, such as 20s; default: as the hub says")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := refuseEmpty(c, "thread", "context"); err != nil {
			return err
		}
		a.To, a.Intent = args[0], "delegate"
		if a.DeadlineMS, err = deadline(c, *timeout); err != nil {
			return err
		}
		if a.Content, err = words(args[1:], io.In); err != nil {
			return err
		}
		if about != "" {
			if a.Context = json.RawMessage(about); !json.Valid(a.Context) {
				return &exit{ExitUsage, errors.New("--context is not JSON: write an object such as '{\"room\":\"kitchen\"}'")}
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
		if asJSON {
			return printJSON(io.Out, answer)
		}
		fmt.Fprintln(io.Out, answer.ID)
		return nil
	}
	return c
}
