package a2a

import (
	"context"
	"slices"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// The hub where a push notification was configured posts it. Its configurations are seen and deleted
// at every hub of the cluster.

// pushID names a configuration.
type pushID struct {
	Task core.TaskID `json:"task"`
	ID   string      `json:"id"`
}

const (
	pushesMatter  rpc.Method[core.TaskID, []wire.PushConfig] = wire.Dialect + ".pushes"
	deletesMatter rpc.Method[pushID, bool]                   = wire.Dialect + ".push.delete"
)

// answerPushes has the server tell other hubs of the configurations that it has.
func (s *Server) answerPushes() {
	pushesMatter.Answer(s.hub, func(_ context.Context, by core.Principal, id core.TaskID) ([]wire.PushConfig, error) {
		return s.configs(by, id), nil
	})
	deletesMatter.Answer(s.hub, func(_ context.Context, by core.Principal, p pushID) (bool, error) {
		return s.deleteConfig(by, p), nil
	})
}

// configs returns the configurations that a principal made here for a task.
func (s *Server) configs(by core.Principal, id core.TaskID) (all []wire.PushConfig) {
	s.pushing.Lock()
	defer s.pushing.Unlock()
	if p := s.pushesOf[id]; p != nil {
		for _, one := range p.configs {
			if one.by == by.ID {
				all = append(all, one.shown())
			}
		}
	}
	return all
}

// deleteConfig deletes a configuration that a principal made here. It reports whether there was one.
func (s *Server) deleteConfig(by core.Principal, id pushID) bool {
	s.pushing.Lock()
	defer s.pushing.Unlock()
	p := s.pushesOf[id.Task]
	if p == nil {
		return false
	}
	before := len(p.configs)
	p.configs = slices.DeleteFunc(p.configs, func(o *push) bool { return o.by == by.ID && o.ID == id.ID })
	return len(p.configs) < before
}

// allConfigs returns the configurations that a principal made for a task, at whichever hub.
func (s *Server) allConfigs(ctx context.Context, by core.Principal, id core.TaskID) []wire.PushConfig {
	all := append([]wire.PushConfig{}, s.configs(by, id)...)
	answers, _ := pushesMatter.AskAll(ctx, s.hub, by, id) // those of a hub that is gone are gone
	for _, a := range answers {
		all = append(all, a.Out...)
	}
	return all
}

// deleteElsewhere deletes a configuration that a principal may have made at another hub.
func (s *Server) deleteElsewhere(ctx context.Context, by core.Principal, id pushID) {
	_, missing := deletesMatter.AskAll(ctx, s.hub, by, id)
	if len(missing) > 0 {
		s.opts.Log.Info("a push notification may still be configured at hubs that do not answer", "task", id.Task, "hubs", missing)
	}
}
