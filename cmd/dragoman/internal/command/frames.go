package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/frame"
)

func framesCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "frames ID", Short: "Show the raw frames of a task on both sides", Args: cobra.ExactArgs(1),
		Long: `Show the frames that a task is made of, as its requester and its agent sent and got them,
and what each became: native, folded or refused. The hub keeps frames if frames.keep is set;
they are gone with the hub.`,
		Example: `  dragoman frames 0198f3c2-...
  dragoman frames 0198f3c2-... --json`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, taskIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := findTask(c.Context(), to.client(), args[0])
		if err != nil {
			return err
		}
		found, err := to.client().Frames(c.Context(), id)
		if err != nil {
			return err
		}
		if to.json {
			return printJSON(io.Out, found)
		}
		for _, f := range found.Frames {
			printFrame(io.Out, f)
		}
		if len(found.Frames) == 0 {
			fmt.Fprintln(io.Err, "no frames of the task are kept")
		}
		if found.Missing != "" {
			fmt.Fprintln(io.Err, visible(found.Missing))
		}
		return nil
	}
	return c
}

// printFrame prints a frame below a line that says when it came, whose it is and what it became.
func printFrame(out io.Writer, f frame.Frame) {
	arrow := "-->"
	if f.Direction == frame.Out {
		arrow = "<--"
	}
	became := make([]string, len(f.Became))
	for i, b := range f.Became {
		became[i] = b.Kind + " " + b.Disposition
	}
	head := fmt.Sprintf("%s %s %s %s", f.At.Local().Format("15:04:05.000"), f.Connection, arrow, strings.Join(became, ", "))
	fmt.Fprintln(out, strings.TrimRight(visible(head), " "))
	if text := string(f.Frame); text != "null" {
		fmt.Fprintf(out, "  %s\n", visible(text))
	}
}
