package command

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/task"
)

// attended reports whether a person is at the terminal of the command, who can be asked.
func (to *hubFlags) attended(noInput bool) bool {
	return !noInput && !to.json && isTerminal(to.In) && isTerminal(to.Err)
}

// orAsked is a check of arguments that may be left out where a person can be asked.
func orAsked(to *hubFlags, noInput *bool, check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) == 0 && to.attended(*noInput) {
			return nil
		}
		return check(c, args)
	}
}

// decideHere puts everything that waits before the person at the terminal, one after the other. What they leave stays.
func decideHere(ctx context.Context, to *hubFlags, waiting []*matter, none string) error {
	if len(waiting) == 0 {
		fmt.Fprintln(to.Err, none)
		return nil
	}
	at := newPlainTerminal(to.In.(*os.File), to.Err)
	defer at.close()
	d := &desk{say: func(text string) { fmt.Fprintln(stream{at, to.Err}, text) }, ask: at.ask, size: func() (int, int) { return sizeOf(to.Err) }, skip: true}
	for _, m := range waiting {
		d.put(m)
	}
	for d.busy() {
		select {
		case line := <-at.lines():
			if line.err != nil {
				return nil
			}
			d.take(ctx, line)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// decideCalls puts the tool calls that wait before the person at the terminal.
func decideCalls(ctx context.Context, to *hubFlags, with decisions) error {
	list, err := with.hub.Approvals(ctx)
	if err != nil {
		return err
	}
	tellMissing(to.Streams, list.Missing)
	var waiting []*matter
	for _, a := range list.Approvals {
		waiting = append(waiting, with.approval(a, aboutCall(a), widthOf(to.Err)))
	}
	return decideHere(ctx, to, waiting, "nothing waits for a decision")
}

// aboutCall says whose tool call it is, and how long it waits.
func aboutCall(a task.PendingApproval) string {
	return fmt.Sprintf("[%s works for %s on task %s; it waits for another %s]", visible(string(a.Agent)), visible(a.From.ID), visible(string(a.Task)), timeLeft(a.Until))
}

// answerHere puts the open questions before the person at the terminal.
func answerHere(ctx context.Context, to *hubFlags, with decisions) error {
	var list questionList
	if err := with.hub.Get(ctx, "/v1/questions", &list); err != nil {
		return err
	}
	tellMissing(to.Streams, list.Missing)
	var waiting []*matter
	for _, q := range list.Questions {
		waiting = append(waiting, with.question(q))
	}
	return decideHere(ctx, to, waiting, "there are no open questions")
}
