package command_test

import "testing"

func TestSetAgentPrintsWhatItSet(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/agents/shout":   `{"id":"shout","dialect":"parallax","max_concurrent":1}`,
		"PATCH /v1/agents/shout": `{"id":"shout","dialect":"parallax","max_concurrent":1}`,
	})
	for flag, want := range map[string]string{
		"--heartbeat=5s":     "shout runs up to 1 task at once; it sends heartbeats every 5s\n",
		"--heartbeat=0":      "shout runs up to 1 task at once; it sends heartbeats at the hub's interval\n",
		"--max-concurrent=1": "shout runs up to 1 task at once\n",
		"--max-concurrent=2": "shout runs up to 1 task at once: the agent itself accepts no more\n",
	} {
		if code, got, stderr := run(t, "config", "set-agent", "shout", flag, hub); got != want {
			t.Errorf("%s: got %d, %q and %q, want %q", flag, code, got, stderr, want)
		}
	}
}
