package command

import (
	"fmt"
	"net/http"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// configCommand changes the settings of a running hub.
func configCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "config", Short: "Change the settings of a running hub", Args: subcommand, Run: printHelp,
		Long: `Change settings while the hub runs. The settings that it starts with are in its file
and its environment: the hub reads them again on SIGHUP, and 'dragoman check --all'
explains them.`,
	}
	c.AddCommand(setAgentCommand(io))
	return c
}

func setAgentCommand(io Streams) *cobra.Command {
	var limit int
	var reason string
	c := &cobra.Command{
		Use: "set-agent ID [flags]", Short: "Change the settings of an agent", Args: usageArgs(cobra.ExactArgs(1)),
		Long: `Set how many tasks an agent runs at once, and how often a Parallax agent sends
heartbeats. Parallax agents are notified. The settings belong to the id until they are
changed, and survive restarts if the hub has a data directory.

  dragoman config set-agent shout --max-concurrent 3 --reason "load balancing"`,
	}
	f := c.Flags()
	f.IntVar(&limit, "max-concurrent", 0, "maximum `number` of tasks at once; 0 for the agent's own")
	heartbeat := timeFlag(f, "heartbeat", 0, "`time` between two heartbeats of a Parallax agent; 0 for the hub's setting")
	f.StringVar(&reason, "reason", "", "`text` with the reason, which the agent gets")
	to := addHubFlags(f, io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, agentIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		body, path := map[string]any{}, "/v1/agents/"+url.PathEscape(args[0])
		var a hub.AgentStatus
		if f.Changed("max-concurrent") {
			body["max_concurrent"] = limit
		}
		if f.Changed("heartbeat") {
			body["heartbeat_interval_ms"] = heartbeat.Milliseconds()
		}
		if len(body) == 0 {
			return usagef("nothing to set: use --max-concurrent, --heartbeat or both")
		}
		if *heartbeat > 0 {
			if err := to.client().Get(c.Context(), path, &a); err != nil {
				return err
			}
			if a.Dialect != parallax.Dialect {
				return usagef("--heartbeat: %s speaks %s, which has no heartbeat interval: leave it out", a.ID, a.Dialect)
			}
		}
		if reason != "" {
			body["reason"] = reason
		}
		if err := to.client().Send(c.Context(), http.MethodPatch, path, body, &a); err != nil {
			return err
		}
		tasks, note := "tasks", ""
		if a.MaxConcurrent == 1 {
			tasks = "task"
		}
		if limit > a.MaxConcurrent {
			note = ": the agent itself accepts no more"
		}
		switch {
		case *heartbeat > 0:
			note += "; it sends heartbeats every " + config.FormatTime(*heartbeat)
		case f.Changed("heartbeat") && a.Dialect == parallax.Dialect:
			note += "; it sends heartbeats at the hub's interval"
		}
		return to.print(a, fmt.Sprintf("%s runs up to %d %s at once%s", a.ID, a.MaxConcurrent, tasks, note))
	}
	return c
}
