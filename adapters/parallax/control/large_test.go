package control_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/control"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// byCapability has an agent once for each of its capabilities: 90 cards of 60 KiB with 60
// capabilities would be 324 MB.
func TestAListOfLargeCardsHasABoundAndGoesOn(t *testing.T) {
	withControl(t, control.Options{}, func(f *fixture) {
		const agents = 90
		for i := range agents {
			card := core.Card{ID: core.AgentID(fmt.Sprintf("a-%02d", i)), Dialect: "parallax", Metadata: map[string]json.RawMessage{"notes": json.RawMessage(`"` + strings.Repeat("x", 59<<10) + `"`)}}
			for c := range 60 {
				card.Capabilities = append(card.Capabilities, fmt.Sprint("c", c))
			}
			s := f.hub.Connect(hub.Identity{Principal: core.Principal{ID: string(card.ID)}, Dialect: "parallax"})
			defer s.Close(nil)
			if err := s.Join(card, hub.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		seen := 0
		for after := ""; ; {
			code, text := f.call("GET", "/api/agents?after="+after, "")
			if code != 200 || len(text) > 10<<20 {
				t.Fatalf("got %d with %d bytes, want 200 with at most 10 MiB", code, len(text))
			}
			var page struct {
				Agents []struct{ ID string }
				Next   string
			}
			if err := json.Unmarshal([]byte(text), &page); err != nil {
				t.Fatal(err)
			}
			seen += len(page.Agents)
			if after = page.Next; after == "" {
				break
			}
		}
		if seen != agents+1 { // and the one of the fixture
			t.Errorf("got %d agents over all pages, want %d", seen, agents+1)
		}
	})
}
