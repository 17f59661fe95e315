package command

import (
	"os/signal"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/supervisor"
)

func guardCommand(io Streams) *cobra.Command {
	return &cobra.Command{
		Use: service.GuardCommand + " MARK", Hidden: true, Args: cobra.ExactArgs(1),
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it has no settings
		RunE: func(_ *cobra.Command, args []string) error {
			signal.Ignore() // only the end of stdin ends it
			supervisor.RunGuard(args[0], io.In)
			return nil
		},
	}
}
