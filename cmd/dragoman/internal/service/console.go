package service

import (
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/console"
)

// consolePages are the paths of the console. They need no token, since they say nothing of the hub,
// and a link on another site may open them.
var consolePages = []string{console.Root, console.Files, strings.TrimSuffix(console.Files, "/")}

// mountConsole serves the page and its files.
func (h *httpListener) mountConsole() {
	page := console.New()
	h.open(consolePages...)
	h.Get(console.Root, page.ServeHTTP)
	h.Get(console.Files+"*", page.ServeHTTP)
	h.Get(strings.TrimSuffix(console.Files, "/"), http.RedirectHandler(console.Root, http.StatusTemporaryRedirect).ServeHTTP)
}
