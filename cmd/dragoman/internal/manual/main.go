package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func main() {
	out := flag.String("out", "man", "the `directory` to write")
	version := flag.String("version", "", "the `version` at the foot of a page")
	date := flag.String("date", "", "the `date` at the foot of a page: 2006-01-02")
	flag.Parse()
	if err := write(*out, *version, *date); err != nil {
		fmt.Fprintln(os.Stderr, "manual:", err)
		os.Exit(1)
	}
}

func write(out, version, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	root := command.NewRoot(command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	plain(root)
	return doc.GenManTree(root, &doc.GenManHeader{Section: "1", Date: &day, Source: "dragoman " + version, Manual: "Dragoman"}, out)
}

// plain makes the help of a command and those below it what a page shows as it is: the examples in it are
// indented, and commands are not to say who made the page.
func plain(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, below := range c.Commands() {
		plain(below)
	}
}
