package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// An agent that was added may lack what it has here: its program is looked for in the PATH of the hub.

const (
	startPatience = 5 * time.Second // until an agent that was added is ready, or failed
	startPoll     = 50 * time.Millisecond
)

// tellStarted says what becomes of an agent that a hub was told to read. It returns an error if it could not be started.
func tellStarted(ctx context.Context, io Streams, h service.Running, agent string) error {
	flag := hubFlagFor(h.URL)
	look, try := self()+" agents "+quoted(agent)+flag, self()+" ask "+quoted(agent)+" hello"+flag
	child, err := startedBy(ctx, h, agent)
	var line string
	switch {
	case errors.Is(err, errNotTaken):
		return fmt.Errorf("the hub (process %d) does not have %s yet: its log says why, and '%s' once it has it", h.PID, quoted(agent), look)
	case err != nil:
		line = fmt.Sprintf("the hub is told, and cannot be asked how it goes (%s): '%s' says that; next: '%s'", visible(inLine(err)), look, try)
	case child.State == core.ChildFailed:
		return fmt.Errorf("%s could not be started: %s%s", quoted(agent), visible(child.LastError), again(agent, child))
	case child.State == core.ChildReady:
		line = fmt.Sprintf("%s is ready; next: '%s'", quoted(agent), try)
	default:
		why := ""
		if child.LastError != "" {
			why = ": " + visible(child.LastError)
		}
		line = fmt.Sprintf("%s is %s%s; '%s' says when it is ready; next: '%s'", quoted(agent), child.State, why, look, try)
	}
	_, err = fmt.Fprintln(io.Out, line)
	return err
}

// errNotTaken says that a hub has not read its settings again, or not taken them.
var errNotTaken = errors.New("the hub does not have the agent")

// startedBy returns the state of an agent once it is ready or failed, or the last one within startPatience.
func startedBy(ctx context.Context, h service.Running, agent string) (*core.Child, error) {
	if h.URL == "" {
		return nil, errors.New("it has no HTTP")
	}
	at := client.Hub{URL: h.URL, Named: "the hub", Token: variable("DRAGOMAN_TOKEN"), CA: variable("DRAGOMAN_CA"), Cert: variable("DRAGOMAN_CERT"), Key: variable("DRAGOMAN_KEY")}.Client()
	patience := time.After(startPatience)
	for {
		var status hub.AgentStatus
		err := at.Get(ctx, "/v1/agents/"+url.PathEscape(agent), &status)
		child := cmp.Or(status.Refused, status.Child)
		switch {
		case errors.Is(err, &core.Fault{Code: core.CodeUnknownAgent}) || err == nil && child == nil:
			err = errNotTaken
		case err != nil, child.State == core.ChildReady, child.State == core.ChildFailed:
			return child, err
		}
		select {
		case <-patience:
			return child, err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(startPoll):
		}
	}
}

// hubFlagFor returns the flag that names a hub, with a blank before; "" for the one that commands take without it.
func hubFlagFor(url string) string {
	if url == "" || url == cmp.Or(variable("DRAGOMAN_HUB"), "http://"+config.Default().HTTPAddr) {
		return ""
	}
	return " --hub " + url
}
