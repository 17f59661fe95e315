package main

import (
	"io"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
)

// A client that has no address to ask in, such as one of lines, is told deltas
// without snapshots where its flag says so, or the hub.
func TestAPiClientOfLinesGetsTheSnapshotsThatAreAskedFor(t *testing.T) {
	for _, tt := range []struct {
		setting, flag string
		want          bool
	}{{"all", "", true}, {"all", "none", false}, {"none", "", false}, {"none", "all", true}} {
		s := newStage(t, func(c *Config) { c.Pi.Snapshots = tt.setting })
		s.cast(t, acp.Dialect, "actor", 1)
		args := []string{"stdio", "--hub", "http://" + s.service.bound.HTTP}
		if tt.flag != "" {
			args = append(args, "--snapshots", tt.flag)
		}
		var out, complaint earshot
		lines := `{"id":"1","type":"create_session","sessionId":"s","agent":"actor"}
{"id":"2","type":"switch_session","sessionId":"s"}
{"id":"3","type":"prompt","sessionId":"s","message":"say ` + s.key() + "\"}\n"
		code := run(t.Context(), args, streams{io.NopCloser(strings.NewReader(lines)), &out, &complaint})
		updates, snapshots := 0, 0
		for l := range strings.Lines(out.String()) {
			if strings.Contains(l, `"message_update"`) {
				updates++
				if strings.Contains(l, `"message":`) {
					snapshots++
				}
			}
		}
		if code != exitDone || updates == 0 || (snapshots > 0) != tt.want {
			t.Errorf("setting %q, flag %q: got %d, %d updates of which %d have the message, want it to be %t that some have\n%s", tt.setting, tt.flag, code, updates, snapshots, tt.want, complaint.String())
		}
	}
}
