package service

import (
	"cmp"
	"runtime"
	"runtime/debug"
)

// A Build says what the program was built from, as far as the go command has noted it.
type Build struct {
	// Version is that of the module: a tag, or one made of the commit; "dev" if it is unknown.
	Version string `json:"version"`
	// Commit is the commit, Date its time (RFC 3339), and Modified whether files differed from it. Without
	// -buildvcs they are unknown.
	Commit   string `json:"commit,omitempty"`
	Date     string `json:"date,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	// Go is the version of Go, Platform the system and the processor: linux/amd64.
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Version is the version of the program.
var Version = ThisBuild().Version

// ThisBuild returns what this program was built from.
func ThisBuild() Build {
	b := Build{Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		if info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Version = cmp.Or(b.Version, "dev")
	return b
}
