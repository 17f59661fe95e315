package service

import "github.com/dragoman-hub/dragoman/adapters/console"

// mountConsole serves the page and its files, which need no token: they say nothing of the hub.
func (h *httpListener) mountConsole() {
	page := console.New()
	h.open(console.Root, console.Files)
	h.Get(console.Root, page.ServeHTTP)
	h.Get(console.Files+"*", page.ServeHTTP)
}
