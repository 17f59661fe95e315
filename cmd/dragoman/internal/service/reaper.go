package service

import "os"

// ReapCommand is the hidden command by which a hub runs the programs of its pi clients: this
// program once more, as the one who ends with everything that they began.
const ReapCommand = "reap"

// reaperCommand is the command line of that, or nil where nobody knows this program.
func reaperCommand() []string {
	// On Linux that is the program which runs, also once its file was replaced or removed.
	const running = "/proc/self/exe"
	if _, err := os.Stat(running); err == nil {
		return []string{running, ReapCommand}
	}
	self, err := os.Executable()
	if err != nil {
		return nil
	}
	return []string{self, ReapCommand}
}
