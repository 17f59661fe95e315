package service

import "runtime/debug"

// Version is the version of the program, from the module that it was built of.
var Version = func() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "dev"
}()
