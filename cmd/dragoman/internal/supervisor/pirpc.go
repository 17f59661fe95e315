package supervisor

import (
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/core"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
)

// newPi returns an agent whose processes are those of pi. What they need on disk is below the data
// directory, where there is one: the extension, and unless the command says otherwise their sessions.
func newPi(c connection) (coreagent.Agent, error) {
	dir, err := c.dir()
	if err != nil {
		return nil, err
	}
	o := pirpc.Options{
		Dial: c.child.dialWith, Dir: dir, Warm: c.entry.Warm, Agent: core.AgentID(c.entry.Name), Sessions: c.sessions(), Count: c.count, Log: c.opts.Log, Frames: c.opts.Frames,
		Lost: c.lost,
		Tools: func() pirpc.Tools {
			url, token := c.hubTools()
			return pirpc.Tools{URL: url, Token: token}
		},
	}
	if data := c.opts.DataDir; data != "" {
		if data, err = filepath.Abs(data); err != nil {
			return nil, err
		}
		o.ExtensionDir = filepath.Join(data, pirpc.Name, url.PathEscape(c.entry.Name))
		if !slices.ContainsFunc(c.entry.Command, ownSessions) {
			o.SessionDir = o.ExtensionDir
		}
	}
	return pirpc.New(o), nil
}

// ownSessions reports whether an argument of pi says where its sessions are.
func ownSessions(arg string) bool {
	name, _, _ := strings.Cut(arg, "=")
	return name == "--no-session" || name == "--session-dir" || name == "--session"
}
