package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/pi/reaper"
)

// reap is the hidden command by which a hub runs the programs of its pi clients: this
// program once more, as the one who ends with everything that they began.
const reap = "reap"

// reaperCommand is the command line of that, or nil where nobody knows this program.
func reaperCommand() []string {
	// On Linux that is the program which runs, also once its file was replaced or removed.
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return []string{running, reap}
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, reap}
}

func reapCommand() *cobra.Command {
	return &cobra.Command{
		Use: reap, Hidden: true, DisableFlagParsing: true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return nil }, // it has no settings
		RunE: func(_ *cobra.Command, args []string) error {
			if code := reaper.Run(args); code != exitDone {
				return &exit{code, errQuiet}
			}
			return nil
		},
	}
}
