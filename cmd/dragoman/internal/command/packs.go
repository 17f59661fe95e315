package command

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func packsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "packs [ID]", Short: "List the packs on the hub", Args: cobra.MaximumNArgs(1),
		Long: `List the packs on the hub, which offer tools to agents: those that are connected, and
those of the settings with their state; or one of them with the names of its tools.
'dragoman agents restart' restarts those of the settings.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, packIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		var list packList
		if err := to.client().Get(c.Context(), "/v1/packs", &list); err != nil {
			return err
		}
		if len(args) == 1 {
			return showPack(to, list.Packs, args[0])
		}
		return printPacks(to, list, list.Packs)
	}
	return c
}

// showPack prints one pack and its tools.
func showPack(to *hubFlags, list []hub.PackStatus, id string) error {
	i := slices.IndexFunc(list, func(p hub.PackStatus) bool { return p.ID == id })
	if i < 0 {
		return fmt.Errorf("no pack %s is here: 'dragoman packs' lists those that are", quoted(id))
	}
	if err := printPacks(to, list[i], list[i:i+1]); err != nil || to.json {
		return err
	}
	for n, tool := range list[i].Tools {
		if n == 0 {
			fmt.Fprintln(to.Out, "\nTOOLS")
		}
		fmt.Fprintln(to.Out, visible(tool))
	}
	return nil
}

// printPacks prints a table of packs, or v if --json is given.
func printPacks(to *hubFlags, v any, list []hub.PackStatus) error {
	const none = "no packs are connected: name MCP servers below packs: in the settings; operators also see those that could not be started"
	heads := []string{"ID", "DIALECT", "TOOLS", "STATE", "RESTARTS", "PID", "LAST ERROR"}
	return printList(to, v, list, none, heads, func(p hub.PackStatus) []string {
		state := core.ChildReady
		if p.Child != nil {
			state = p.Child.State
		}
		row := append([]string{p.ID, p.Dialect, fmt.Sprint(len(p.Tools)), state.String()}, childCells(p.ID, p.Child)...)
		if p.Child != nil { // what to do about the error is at its end
			row[len(row)-1] = orDash(oneLine(p.Child.LastError) + again(p.ID, p.Child))
		}
		return row
	})
}
