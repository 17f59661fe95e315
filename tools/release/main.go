package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

func main() {
	version := flag.String("version", "", "the `number` of the release, without a v")
	date := flag.String("date", "", "the `time` of its commit, as RFC 3339 has it")
	out := flag.String("out", "", "the `file` to write")
	flag.Parse()
	if err := run(*version, *date, *out, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run writes the image of programs for Linux, each as amd64=path, to out.
func run(version, date, out string, programs []string) error {
	at, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return fmt.Errorf("-date: %w", err)
	}
	r := release{version: version, date: at.UTC()}
	for _, p := range programs {
		arch, path, is := strings.Cut(p, "=")
		if !is {
			return fmt.Errorf("%q is no program: write it as amd64=path", p)
		}
		r.platforms = append(r.platforms, platform{arch, path})
	}
	return r.image(out)
}

// release is what an image is made of.
type release struct {
	version   string    // without the v
	date      time.Time // of every file
	platforms []platform
}

// platform is one of Linux, with the program for it.
type platform struct{ arch, program string }
