package command

import (
	"context"
	"time"

	"github.com/spf13/cobra"
)

// completeTime is how long a completion may take: somebody waits for it at a prompt.
const completeTime = time.Second

// completeAgent completes the first argument with the ids of agents on the hub.
func completeAgent(to *hubFlags) cobra.CompletionFunc {
	of := completeAgents(to)
	return func(c *cobra.Command, args []string, given string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of(c, args, given)
	}
}

// completeAgents completes with the ids of agents on the hub; nothing if it cannot be asked. A
// shell does not show what is invisible in an id, so such ids are left out.
func completeAgents(to *hubFlags) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) (ids []string, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completeTime) // completions have no context
		defer cancel()
		list, err := to.client().Agents(ctx)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for _, a := range list {
			if id := string(a.ID); visible(id) == id {
				ids = append(ids, id)
			}
		}
		return ids, cobra.ShellCompDirectiveNoFileComp
	}
}
