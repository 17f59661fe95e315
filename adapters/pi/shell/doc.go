// Package shell runs a bash command for a pi client and reports what it prints.
//
// [Command.Run] starts the command and waits for it. When Run returns, everything that
// the command started has ended: on Linux with a reaper (package reaper) all descendants,
// elsewhere its process group. On Windows only bash itself has, which has to be installed.
// The command gets a small part of the environment, so that it inherits no secrets.
//
// An [Output] takes what the command prints. It reports pieces at a bounded rate while
// the command runs and keeps the end of the output, so that its memory does not grow
// with what is printed:
//
//	out := shell.NewOutput(report)
//	code, err := shell.Command{Line: "make", Dir: dir}.Run(ctx, out)
//	printed := out.Close()
//
// The package knows no session and no protocol. The caller decides when a command is
// cancelled and what a client gets. An Output has its own lock; there is no other
// state.
package shell
