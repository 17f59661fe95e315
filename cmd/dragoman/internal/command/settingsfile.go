package command

import (
	"cmp"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// commandLog logs which file the settings are from, and the commands that a hub is about to run, each once.
type commandLog struct {
	log  *slog.Logger
	file string
	told []string
}

// tell logs what of the settings has not been told.
func (l *commandLog) tell(c config.Config) {
	if c.File != l.file {
		l.file = c.File
		l.log.Info("the settings are those of a file", "file", absolute(c.File))
	}
	var told []string
	one := func(kind, name string, command []string) {
		if len(command) == 0 {
			return
		}
		words := make([]string, len(command))
		for i, word := range command {
			words[i] = quoted(word)
		}
		line := strings.Join(words, " ")
		if told = append(told, kind+name+"\n"+line); !slices.Contains(l.told, kind+name+"\n"+line) {
			l.log.Info("will run", kind, name, "command", line)
		}
	}
	for _, a := range c.Agents {
		one("agent", a.Name, a.Command)
	}
	for _, p := range c.Packs {
		one("pack", p.Name, p.Command)
	}
	l.told = told
}

// absolute returns the whole path of a file, or the path as it is where there is no working directory.
func absolute(path string) string {
	if whole, err := filepath.Abs(path); err == nil {
		return whole
	}
	return path
}

// announce lets 'dragoman add' find this hub, until gone is called, and by at ask it.
func announce(c config.Config, log *slog.Logger) (at func(url string), gone func()) {
	tell, gone, err := service.Announce(cmp.Or(c.File, config.FileName))
	if err != nil {
		log.Debug("'dragoman add' does not find this hub", "error", err)
		return func(string) {}, func() {}
	}
	return func(url string) {
		if err := tell(url); err != nil {
			log.Debug("'dragoman add' cannot ask this hub", "error", err)
		}
	}, gone
}

// urlHere returns the address of a hub for this machine; "" for one without HTTP.
func urlHere(at service.Addresses, c config.Config) string {
	host, port, err := net.SplitHostPort(at.HTTP)
	if err != nil {
		return ""
	}
	if ip, err := netip.ParseAddr(host); err == nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if c.TLS.Cert != "" {
		scheme = "https"
	}
	return fmt.Sprintf("%s://%s", scheme, net.JoinHostPort(host, port))
}

// nextStep returns the address of the console, and what to type next; "" for a hub without HTTP.
func nextStep(console string, c config.Config) string {
	next := self() + " add"
	switch {
	case console == "":
		return ""
	case len(c.Agents) > 0:
		next = self() + " ask " + quoted(c.Agents[0].Name) + " hello" + hubFlagFor(console)
	}
	return fmt.Sprintf("the console is at %s/; next, in another terminal: %s", console, next)
}

// self is how this program is called from the shell that has started it.
func self() string {
	if name := os.Args[0]; !filepath.IsAbs(name) && name != filepath.Base(name) {
		return name
	}
	return "dragoman"
}
