package main

import (
	"context"
	"os"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func main() {
	os.Exit(command.Run(context.Background(), os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
