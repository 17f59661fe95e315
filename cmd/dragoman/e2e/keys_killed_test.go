package e2e

import "testing"

// A request that is sent again to a hub that was killed and started again, in each dialect that has keys: one
// that was answered, and one that ran.
func TestARequestThatIsSentAgainAfterAKillOpensNoSecondTask(t *testing.T) {
	t.Parallel()
	h := newHubs(t, 1)[0]
	h.start()
	h.untilReady()
	dialects := map[string]repeatable{"coven": covenRepeatable, "a2a": a2aRepeatable, "acp": acpRepeatable}
	ids := map[string]string{}
	w := joinWorker(t, h, "worker")
	for name, send := range dialects {
		ids[name+" answered"] = send(t, h, name+" answered", "wait for "+name)
		w.takes(t, "wait for "+name)
	}
	for name, send := range dialects {
		ids[name+" ran"] = send(t, h, name+" ran", "wait for "+name)
	}
	joinWorker(t, h, "other")
	h.untilRecorded(t, "other")
	h.kill()
	h.start()
	h.untilReady()
	w = joinWorker(t, h, "worker")
	for name, send := range dialects {
		for _, key := range []string{name + " answered", name + " ran"} {
			if id := send(t, h, key, "wait for "+name); id != ids[key] {
				t.Errorf("%s, sent again after a kill: got task %q, want %q", key, id, ids[key])
			}
		}
	}
	w.takesNoMore(t, "worker", h)
}

// untilRecorded waits until the journal has a request to an agent, and with it all that came before.
func (h *clusterHub) untilRecorded(t *testing.T, agent string) {
	t.Helper()
	if err := h.Post(t.Context(), "/v1/tasks", map[string]string{"to": agent, "content": "last", "receipt": "recorded"}, new(any)); err != nil {
		t.Fatal(err)
	}
}
