package pi_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Lanes are first in, first out (section 7.3): a control command overtakes a run, but not the
// creation of its session.
func TestPipelinedCommandsFindTheirSession(t *testing.T) {
	for name, tt := range map[string]struct {
		frames []string
		want   string
	}{
		"looks": {
			[]string{`{"id":"1","type":"switch_session","sessionId":"s"}`, `{"id":"2","type":"get_state","sessionId":"s"}`},
			"1 true, 2 true",
		},
		"stops what it asks": {
			[]string{`{"id":"1","type":"prompt","sessionId":"s","message":"long"}`, `{"id":"2","type":"abort","sessionId":"s"}`},
			"2 true, 1 true",
		},
		"deletes it and makes it anew": {
			[]string{
				`{"id":"1","type":"delete_session","sessionId":"s"}`, `{"id":"2","type":"get_state","sessionId":"s"}`,
				`{"id":"3","type":"create_session","sessionId":"s","agent":"x"}`, `{"id":"4","type":"get_state","sessionId":"s"}`,
			},
			"1 true, 2 false, 3 true, 4 true",
		},
	} {
		t.Run(name, func(t *testing.T) {
			h, s := newServer(t, pi.Options{Commands: command.Options{QueuePrompts: true}})
			joinAgent(t, h, core.Card{ID: "x", Features: core.FeatureCancellation}, func(a *testAgent, b hub.Batch) {
				for _, e := range b.Events {
					if e.Body.Kind() == core.KindCancelRequested {
						a.report(b.Task, core.Cancelled{})
					}
				}
			})
			c := dial(t, s, pi.ConnOptions{})
			release := stall(s.Parts().Disk, command.Workers)
			c.send(`{"id":"0","type":"create_session","sessionId":"s","agent":"x","cwd":"/"}`)
			for _, f := range tt.frames {
				c.send(f)
			}
			// Other sessions and commands of the server do not wait.
			c.ok(`{"id":"l","type":"list_sessions"}`)
			c.fails(`{"id":"o","type":"get_state","sessionId":"other"}`, "Session other not found")
			release()
			for i := range tt.frames {
				c.until(`"type":"response"`, fmt.Sprintf(`"id":"%d"`, i+1))
			}
			var got []string
			for _, f := range c.received() {
				if id, err := strconv.Atoi(strings.Trim(string(f.ID), `"`)); err == nil && id > 0 && f.Type == "response" {
					got = append(got, fmt.Sprintf("%d %t", id, f.Success))
				}
			}
			if strings.Join(got, ", ") != tt.want {
				t.Errorf("got %s, want %s", strings.Join(got, ", "), tt.want)
			}
		})
	}
}
