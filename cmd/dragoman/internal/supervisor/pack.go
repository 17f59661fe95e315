package supervisor

import (
	"context"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// pack returns the unit of a pack, and what runs it until its context ends.
func (s *Supervisor) pack(e config.Pack) (*unit, func(ctx context.Context, listed func())) {
	c := &child{launcher: s.opts.Launcher, name: e.Name, process: e.Process}
	u := newUnit(kindPack, e.Name, s.opts.Log, nil, func(core.Child) {}, c.pid)
	return u, func(ctx context.Context, listed func()) { listed(); u.run(ctx) }
}
