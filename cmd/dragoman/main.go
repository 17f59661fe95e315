package main

import (
	"context"
	"os"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/firstprocess"
)

func main() {
	if code, ran := firstprocess.Run(); ran {
		os.Exit(code)
	}
	os.Exit(command.Run(context.Background(), os.Args[1:], command.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}
