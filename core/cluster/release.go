package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/fifo"
)

// releaseTimeout bounds one request to a hub to give an agent up.
const releaseTimeout = 3 * time.Second

// askRelease asks a hub to give an agent up.
func (c *Cluster) askRelease(ctx context.Context, h *shown, id core.AgentID, p core.Principal, must bool) (left bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, releaseTimeout)
	defer cancel()
	ask := releaseAsk{of(kindReleaseAsk), h.life.Epoch, id, h.Connection, core.Principal{ID: p.ID, Authenticated: p.Authenticated}, must}
	answer, err := c.s.Bus.Request(ctx, subjectOf(h.life.Hub, requestRelease), encode(ask))
	if err != nil {
		if errors.Is(err, ErrNobody) {
			c.mu.Lock()
			c.doubt(c.records[h.life.Hub])
			c.mu.Unlock()
		}
		return false, fmt.Errorf("asking the hub %s for the agent %s: %w", h.life.Hub, id, err)
	}
	said, err := read[releaseAnswer](answer, kindReleaseAnswer)
	return said.Left, err
}

// Release is the wish of another hub that an agent leaves this one, since it has come there.
// The engine judges it as it does when a second connection wants an id here, closes the
// connection or not, and answers.
type Release struct {
	Agent core.AgentID
	// Connection is the one that has to go. If the agent has none any more, or one with a higher
	// number, it has left; one with a lower number counts as this one.
	Connection uint64
	// For is who came there: an id and whether it is authenticated.
	For core.Principal
	// Must says that both connections are of one authenticated principal: the connection has to go.
	Must bool

	answer func(left bool)
}

// Answer says whether the agent has left this hub, so that it may appear at the other. It may be
// called later, and from any goroutine; without an answer the other hub asks again.
func (r Release) Answer(left bool) { r.answer(left) }

// maxReleases bounds the wishes that the engine has not seen yet. Hubs repeat theirs.
const maxReleases = 1024

// answerRelease takes the wish of another hub.
func (c *Cluster) answerRelease(data []byte, reply func([]byte)) {
	ask, err := read[releaseAsk](data, kindReleaseAsk)
	if err != nil || reply == nil {
		return
	}
	answer := func(left bool) { reply(encode(releaseAnswer{of(kindReleaseAnswer), left})) }
	r := Release{Agent: ask.Agent, Connection: ask.Connection, For: ask.For, Must: ask.Must, answer: func(left bool) {
		answer(left && c.yield(ask.Agent, ask.Connection))
	}}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch a := c.own[ask.Agent]; {
	case ask.Epoch != c.s.Life.Epoch:
		answer(ask.Epoch < c.s.Life.Epoch)
	case c.s.Callbacks.Release == nil, a != nil && a.isJoining():
		answer(false)
	case len(c.releases) < maxReleases:
		c.releases = append(c.releases, r)
		fifo.Signal(c.tell)
	}
}
