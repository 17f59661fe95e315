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
	c := &cobra.Command{
		Use: "inject TASK [WORD...]", Short: "Send context to an agent while it works",
		Long: `Send context to the agent that is working on a task, and wait for its answer.
Without words, or with "-" or @-, the context is read from stdin; @FILE, as the only word, reads
a file; @@ stands for an @ at the beginning. If the agent accepts no context during a task,
nothing is sent and the command fails.`,
		Example: `  dragoman inject 0198f3c2-... "it is raining" --priority immediate
  tail -n 20 build.log | dragoman inject 0198f3c2-... --source ci`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	f.StringVar(&name, "priority", "normal", "`priority`: immediate (into this answer), normal, or deferred (after its work)")
	f.StringVar(&source, "source", "", "`name` of the source, which the agent gets beside your own")
	wait := timeFlag(f, "wait", injectWait, "`time` to wait for the agent's answer; 0 for not at all")
	c.ValidArgsFunction = withContent(fromHub(to, runningIDs))
	completeFlag(c, "priority", fixed("immediate", "normal", "deferred"))
	c.RunE = func(c *cobra.Command, args []string) error {
		if priority.UnmarshalText([]byte(name)) != nil || priority == 0 {
			return usagef("--priority %q: use immediate, normal or deferred", name)
		}
		content, err := contentOf(args[1:], io.In)
		if err != nil {
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		body := map[string]any{"id": core.NewID(), "content": content, "priority": name, "source": source}
		var answer client.Injection
		id, err := findTask(ctx, to.client(), args[0])
		if err == nil {
			answer, err = to.client().Inject(ctx, id, body, *wait)
		}
		switch {
		case ctx.Err() != nil:
			return &exit{ExitInterrupted, errLeft}
		case errors.Is(err, client.ErrUnanswered):
			return &exit{ExitTimeout, err}
		case err != nil:
			return err
		}
		var failure error
		line := "sent"
		switch {
		case answer.Accepted == nil && *wait > 0:
			failure = fmt.Errorf("it was sent%s", because(answer.Reason))
		case answer.Accepted != nil && !*answer.Accepted:
			failure = fmt.Errorf("the agent did not accept it%s", because(answer.Reason))
		case *wait > 0:
			line = "accepted" + because(answer.Reason)
		}
		if failure != nil && !to.json {
			return failure
		}
		return errors.Join(to.print(answer, line), failure)
	}
	return c
}

func cancelCommand(io Streams) *cobra.Command {
	var reason string
	c := &cobra.Command{
		Use: "cancel TASK", Short: "Cancel a task", Args: cobra.ExactArgs(1),
		Long: `Cancel a task. An agent that supports cancellation is asked to stop and gets some time
to end the task. Prints cancelled, or cancelling while the task has not ended:
'dragoman tail' shows how it ends.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, runningIDs))
	c.Flags().StringVar(&reason, "reason", "", "`text` with the reason, which the agent gets and the task keeps")
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := findTask(c.Context(), to.client(), args[0])
		if err != nil {
			return err
		}
		state, err := to.client().Cancel(c.Context(), id, reason)
		if err != nil {
			return err
		}
		if state != core.KindCancelled.String() {
			state = "cancelling"
		}
		return to.print(map[string]string{"task": string(id), "state": state}, state)
	}
	return c
}
