package command

import (
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

func hubsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "hubs", Short: "List the hubs of the cluster", Args: cobra.NoArgs,
		Long: `List the hubs of the cluster as the hub that is asked sees them: up, suspect (not heard
lately), gone (its tasks have ended or moved) or draining. A hub that does not hear a
majority says that its view is stale: the others may be well.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var hub struct {
			Cluster *struct {
				Hubs  []cluster.Hub `json:"hubs"`
				Stale bool          `json:"stale,omitempty"`
			} `json:"cluster"`
		}
		if err := to.client().Get(c.Context(), "/v1/hub", &hub); err != nil {
			return err
		}
		if hub.Cluster == nil {
			return printList(to, hub, []cluster.Hub(nil), "this hub is alone: it has no cluster", nil, hubCells)
		}
		if hub.Cluster.Stale && !to.json {
			fmt.Fprintln(io.Err, "the view of this hub is stale: it does not hear a majority of the cluster")
		}
		return printList(to, hub.Cluster, hub.Cluster.Hubs, "", []string{"HUB", "STATE", "AGENTS", "TASKS", "EPOCH", "SINCE", "TAKEN BY"}, hubCells)
	}
	return c
}

// hubCells is the row of a hub.
func hubCells(h cluster.Hub) []string {
	by := "-"
	if h.TakenBy != nil {
		by = h.TakenBy.Hub
	}
	return []string{h.Name, h.State.String(), strconv.Itoa(h.Agents), strconv.Itoa(h.Tasks), strconv.FormatUint(h.Epoch, 10), when(h.Since), by}
}
