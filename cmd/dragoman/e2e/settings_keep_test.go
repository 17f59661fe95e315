package e2e

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

func TestKeepTasksIsASettingOfEachDialect(t *testing.T) {
	for _, asks := range []*clientDialect{covenByTools(), parallaxByExtension(), acpOverWebSocket(), acpOverHTTP(), piOverWebSocket()} {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %t", asks.name, keep), func(t *testing.T) {
				h := newTestHub(t, func(c *config.Config) {
					for _, set := range []*bool{&c.Coven.KeepTasks, &c.Parallax.KeepTasks, &c.ACP.KeepTasks, &c.Pi.KeepTasks} {
						*set = keep
					}
				})
				d := &pair{testHub: h, asks: asks, answers: connectingAgents(parallax.Dialect), agent: "actor"}
				d.answers.start(t, h, d.agent, 1)
				r := asks.connect(t, h, "asker")
				defer r.leave()
				key, x := d.startHalf(t, r, query{})
				r.cut()
				if got := x.wait(t); got.End != "lost" {
					t.Errorf("got %+v, want the connection lost", got)
				}
				if keep {
					d.finish(t, key)
				} else {
					d.wantCancelled(t, key)
				}
			})
		}
	}
}
