package command

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/cluster"
)

func hubsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "hubs", Short: "List the hubs of the cluster", Args: cobra.NoArgs,
		Long: `List the hubs of the cluster as the hub that is asked sees them: up, suspect (not heard
lately), gone (its tasks have ended or moved), draining or starting (it reads its journal). A hub that does not hear a
majority says that its view is stale: the others may be well.`,
	}
	c.AddCommand(forgetCommand(io))
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var hub hubStatus
		if err := to.client().Get(c.Context(), "/v1/hub", &hub); err != nil {
			return err
		}
		if hub.Cluster == nil {
			return printList(to, hub, []cluster.Hub(nil), "this hub is alone: it has no cluster", nil, hubCells)
		}
		if hub.Cluster.Stale && !to.json {
			fmt.Fprintln(io.Err, "the view of this hub is stale: it does not hear a majority of the cluster")
		}
		return printList(to, hub.Cluster, hub.Cluster.Hubs, "", []string{"HUB", "STATE", "AGENTS", "TASKS", "EPOCH", "SINCE", "TAKEN BY", "ADDRESS"}, hubCells)
	}
	return c
}

func forgetCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "forget NAME", Short: "Say that a hub is gone for good", Args: usageArgs(cobra.ExactArgs(1)),
		Long: `Say that a hub of the cluster is gone for good: it no longer counts for the majority. Its
part of the journal stays. A hub that is heard is refused; one that comes back counts again.

  dragoman hubs forget c`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, hubNames))
	c.RunE = func(c *cobra.Command, args []string) error {
		var answer struct {
			Name string `json:"name"`
		}
		if err := to.client().Send(c.Context(), http.MethodPost, "/v1/hubs/"+url.PathEscape(args[0])+"/forget", struct{}{}, &answer); err != nil {
			return err
		}
		return to.print(answer, "hub "+args[0]+" no longer counts: 'dragoman hubs' lists the others")
	}
	return c
}

// hubCells is the row of a hub.
func hubCells(h cluster.Hub) []string {
	by := "-"
	if h.TakenBy != nil {
		by = h.TakenBy.Hub
	}
	return []string{h.Name, h.State.String(), strconv.Itoa(h.Agents), strconv.Itoa(h.Tasks), strconv.FormatUint(h.Epoch, 10), since(h.Since), by, cmp.Or(h.Address, "-")}
}
