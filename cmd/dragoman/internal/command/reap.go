package command

import (
	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/pi/reaper"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use: service.ReapCommand, Hidden: true, DisableFlagParsing: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it has no settings
		RunE: func(_ *cobra.Command, args []string) error {
			if code := reaper.Run(args); code != ExitDone {
				return &exit{code, errQuiet}
			}
			return nil
		},
	}
}
