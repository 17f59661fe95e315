package supervisor

import (
	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	coreagent "github.com/dragoman-hub/dragoman/core/agent"
)

// newA2A returns a remote agent that speaks A2A.
func newA2A(c connection) (coreagent.Agent, error) {
	log := c.opts.Log.With("agent", c.entry.Name)
	return client.New(client.Options{
		Name: c.entry.Name, Hub: c.opts.Hub.ID(), URL: c.entry.URL, HTTP: patient(c.opts.HTTP), Log: log, Count: c.count, Sessions: c.sessions(), Frames: c.opts.Frames,
		Token: func() string {
			token, err := c.token()
			if err != nil {
				log.Warn("the token of a remote agent cannot be read", "error", err)
			}
			return token
		},
	}), nil
}
