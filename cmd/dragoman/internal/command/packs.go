package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func packsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "packs", Short: "List the packs on the hub", Args: cobra.NoArgs,
		Long: `List the packs on the hub, which offer tools to agents: those that are connected, and
those of the settings with their state. 'dragoman agents restart' restarts those too.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var list packList
		if err := to.client().Get(c.Context(), "/v1/packs", &list); err != nil {
			return err
		}
		const none = "no packs are connected: name MCP servers below packs: in the settings; operators also see those that could not be started"
		heads := []string{"ID", "DIALECT", "TOOLS", "STATE", "RESTARTS", "PID", "LAST ERROR"}
		return printList(to, list, list.Packs, none, heads, func(p hub.PackStatus) []string {
			state := core.ChildReady
			if p.Child != nil {
				state = p.Child.State
			}
			row := append([]string{p.ID, p.Dialect, fmt.Sprint(len(p.Tools)), state.String()}, childCells(p.Child)...)
			if p.Child != nil { // what to do about the error is at its end
				row[len(row)-1] = orDash(oneLine(p.Child.LastError))
			}
			return row
		})
	}
	return c
}
