package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// reticent is a REST client that does not say whether its tasks are to be kept.
type reticent struct{ *restClient }

func (c reticent) begin(q inquiry) *exchange {
	x := &restExchange{exchange: newExchange()}
	body := plainJSON(map[string]any{"to": q.to, "content": q.content, "deadline_ms": q.deadline.Milliseconds()})
	c.group.Go(func() { c.read(x, http.MethodPost, "/v1/tasks", body, func(string) {}) })
	return x.exchange
}

func TestWhetherWhatWasAskedRunsOnWithoutItsRequesterCanBeSet(t *testing.T) {
	rest := overREST()
	rest.connect = func(t *testing.T, s *stage, _ string) requester { return reticent{connectREST(t, s)} }
	for _, asks := range []*tongue{covenByTools(), parallaxByExtension(), acpOverWebSocket(), acpOverHTTP(), piOverWebSocket(), rest} {
		for _, keep := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s %t", asks.name, keep), func(t *testing.T) {
				s := newStage(t, func(c *config.Config) {
					for _, set := range []*bool{&c.Coven.KeepTasks, &c.Parallax.KeepTasks, &c.ACP.KeepTasks, &c.Pi.KeepTasks, &c.REST.KeepTasks} {
						*set = keep
					}
				})
				d := &duo{stage: s, asks: asks, answers: parallax.Dialect, agent: "actor"}
				s.cast(t, d.answers, d.agent, 1)
				r := asks.connect(t, s, "asker")
				defer r.leave()
				key, x := d.midway(t, r, inquiry{})
				r.cut()
				if got := x.outcome(t); got.End != "lost" {
					t.Errorf("got %+v at who was cut off, want the connection lost", got)
				}
				if keep {
					d.finished(t, key)
				} else {
					d.dropped(t, key)
				}
			})
		}
	}
}
