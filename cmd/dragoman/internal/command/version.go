package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func versionCommand(io Streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "version", Short: "Print the version", Args: cobra.NoArgs,
		Long: "Print the version. --json also prints the commit and its date, as far as they are known, the version of\nGo and the platform.",
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error {
		if asJSON {
			return printJSON(io.Out, service.ThisBuild())
		}
		_, err := fmt.Fprintf(io.Out, "dragoman %s\n", service.Version)
		return err
	}
	return c
}
