package command

import (
	"errors"
	"fmt"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// injectWait is how long the command waits for the agent's answer.
const injectWait = 30 * time.Second

func injectCommand(io Streams) *cobra.Command {
	var priority core.InjectionPriority
	var name, source string
	var asJSON bool
	c := &cobra.Command{
		Use: "inject TASK [WORD...]", Short: "Tell an agent something while it works",
		Long: `Send context to the agent that is working on a task, and wait for its answer.
Without words, or with "-", the context is read from stdin. If the agent accepts no
context during a task, nothing is sent and the command fails.`,
		Example: `  dragoman inject 0198f3c2-... "it is raining" --priority immediate
  tail -n 20 build.log | dragoman inject 0198f3c2-... --source ci`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&name, "priority", "normal", "`priority`: immediate (into this answer), normal, or deferred (after its work)")
	f.StringVar(&source, "source", "", "`name` of the source, which the agent is told")
	wait := timeFlag(f, "wait", injectWait, "`time` to wait for the agent's answer; 0 for not at all")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if priority.UnmarshalText([]byte(name)) != nil || priority == 0 {
			return &exit{ExitUsage, fmt.Errorf("--priority %q: use immediate, normal or deferred", name)}
		}
		content, err := words(args[1:], io.In)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		body := map[string]any{"id": core.NewID(), "content": content, "priority": name, "source": source}
		told, err := to.client().Inject(ctx, core.TaskID(args[0]), body, *wait)
		switch {
		case ctx.Err() != nil:
			return &exit{ExitInterrupted, errLeft}
		case errors.Is(err, client.ErrUnanswered):
			return &exit{ExitTimeout, err}
		case err != nil:
			return err
		case asJSON:
			if err := printJSON(io.Out, told); err != nil {
				return err
			}
		}
		switch {
		case told.Accepted == nil && *wait > 0:
			return &exit{ExitFailed, fmt.Errorf("it was sent%s", because(told.Reason))}
		case told.Accepted != nil && !*told.Accepted:
			return &exit{ExitFailed, fmt.Errorf("the agent did not accept it%s", because(told.Reason))}
		case !asJSON && *wait > 0:
			_, err = fmt.Fprintln(io.Out, "accepted"+because(told.Reason))
		case !asJSON:
			_, err = fmt.Fprintln(io.Out, "sent")
		}
		return err
	}
	return c
}

func cancelCommand(io Streams) *cobra.Command {
	var reason string
	var asJSON bool
	c := &cobra.Command{
		Use: "cancel TASK", Short: "Stop a task", Args: cobra.ExactArgs(1),
		Long: `Stop a task. An agent that supports cancellation is told and gets some time to end it;
others are not told. Prints cancelled, or cancelling while the task has not ended:
'dragoman tail' shows how it ends.`,
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&reason, "reason", "", "`text` that says why, for the agent and whoever reads the task")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		state, err := to.client().Cancel(c.Context(), core.TaskID(args[0]), reason)
		switch {
		case err != nil:
			return err
		case state != core.KindCancelled.String():
			state = "cancelling"
		}
		if asJSON {
			return printJSON(io.Out, map[string]string{"task": args[0], "state": state})
		}
		_, err = fmt.Fprintln(io.Out, state)
		return err
	}
	return c
}
