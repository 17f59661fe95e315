package command

import (
	"os"

	"golang.org/x/sys/windows"
)

// discardTyped throws away what was typed at a terminal and not read yet.
func discardTyped(in *os.File) { _ = windows.FlushConsoleInputBuffer(windows.Handle(in.Fd())) }
