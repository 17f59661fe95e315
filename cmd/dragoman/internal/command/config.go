package command

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// configCommand changes the settings of a running hub.
func configCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Change the settings of a running hub", Args: subcommand, Run: printHelp,
		Long: `Change the settings of a hub while it runs. Those that it starts with stand in its
file and its environment: it reads them again on SIGHUP, and 'dragoman check' explains
them.`,
	}
	c.AddCommand(setAgentCommand(io))
	return c
}

func setAgentCommand(io Streams) *cobra.Command {
	var most int
	var reason string
	var asJSON bool
	c := &cobra.Command{
		Use: "set-agent ID [flags]", Short: "Set how an agent works", Args: usageArgs(cobra.ExactArgs(1)),
		Long: `Set how many tasks an agent runs at once, and how often it sends heartbeats. The
agent is told if its dialect can. The settings belong to the id until they are changed,
and survive restarts if the hub has a data directory.

  dragoman config set-agent shout --max-concurrent 3 --reason "load balancing"`,
	}
	f := c.Flags()
	f.IntVar(&most, "max-concurrent", 0, "`number` of tasks at once at most; 0 for what the agent says")
	beat := timeFlag(f, "heartbeat", 0, "`time` between two heartbeats; 0 for the one in the settings")
	f.StringVar(&reason, "reason", "", "`text` that the agent is told")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	to := hubFlags(f)
	c.RunE = func(c *cobra.Command, args []string) error {
		body := map[string]any{}
		if f.Changed("max-concurrent") {
			body["max_concurrent"] = most
		}
		if f.Changed("heartbeat") {
			body["heartbeat_interval_ms"] = beat.Milliseconds()
		}
		if len(body) == 0 {
			return &exit{ExitUsage, errors.New("nothing to set: use --max-concurrent, --heartbeat or both")}
		}
		if reason != "" {
			body["reason"] = reason
		}
		var a hub.AgentStatus
		if err := to.client().Send(c.Context(), http.MethodPatch, "/v1/agents/"+url.PathEscape(args[0]), body, &a); err != nil {
			return err
		}
		if *beat > 0 && a.Dialect != parallax.Dialect {
			fmt.Fprintf(io.Err, "%s speaks %s, which has no heartbeat interval: --heartbeat has no effect\n", a.ID, a.Dialect)
		}
		if asJSON {
			return printJSON(io.Out, a)
		}
		bound := ""
		if most > a.MaxConcurrent {
			bound = ": the agent itself accepts no more"
		}
		fmt.Fprintf(io.Out, "%s runs %d at once%s\n", a.ID, a.MaxConcurrent, bound)
		return nil
	}
	return c
}
