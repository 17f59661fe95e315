package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

// Who follows all tasks of a hub that is killed is told the rest by the next one: each event once.
func TestTheStreamOfAllTasksGoesOnAfterAKill(t *testing.T) {
	dir := t.TempDir()
	first := serveHub(t, dir, "interval")
	first.startKeeper(t)
	before, err := first.Do(t.Context(), http.MethodGet, "/v1/events", "text/event-stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	at, err := bufio.NewReader(before.Body).ReadString('\n')
	before.Body.Close()
	at, isID := strings.CutPrefix(strings.TrimSpace(at), "id: ")
	if err != nil || !isID {
		t.Fatalf("got %q and %v first, want an id", at, err)
	}
	var ids []core.TaskID
	for _, content := range []string{"one", "two", "three"} {
		var answer struct{ ID core.TaskID }
		first.post(t, "/v1/tasks?wait=true", content, &answer)
		ids = append(ids, answer.ID)
	}
	seqs, ended := map[core.TaskID][]uint64{}, 0
	// read reads events until a number of tasks has ended, or for one event.
	read := func(h *servedHub, ends int) {
		t.Helper()
		resp, err := h.Do(t.Context(), http.MethodGet, "/v1/events?from="+url.QueryEscape(at), client.NDJSON, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		for lines := bufio.NewReader(resp.Body); ; {
			text, err := lines.ReadBytes('\n')
			if err != nil {
				t.Fatal(err)
			}
			var l client.Line
			if err := json.Unmarshal(text, &l); err != nil || l.Gap != nil || l.ID == "" {
				t.Fatalf("got %s, want an event with an id", text)
			}
			for seq := l.Seq; seq <= l.End(); seq++ {
				seqs[l.Task] = append(seqs[l.Task], seq)
			}
			at = l.ID
			if l.Body.Kind().Ends() {
				ends--
				ended++
			}
			if ends <= 0 {
				return
			}
		}
	}
	for range 2 {
		read(first, 0)
	}
	first.kill()
	second := serveHub(t, dir, "interval")
	for range 2 {
		read(second, 0)
	}
	second.startKeeper(t)
	ids = append(ids, second.ask(t, "four"))
	read(second, len(ids)-ended)
	for _, id := range ids {
		if got := seqs[id]; len(got) < 4 || got[0] != 1 || got[len(got)-1] != uint64(len(got)) || !slices.IsSorted(got) {
			t.Errorf("task %s: got the events %v, want each once", id, got)
		}
	}
}
