package e2e

import "github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"

// How the programs of others come into the tests.
var (
	notRun        = install.NotRun
	needs         = install.Needs
	installNode   = install.Node
	installDebian = install.Debian
)
