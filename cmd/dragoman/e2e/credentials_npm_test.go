package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The clients of npm bring what they can carry: headers. Their fetch sends no client certificate, and
// they sign nothing.
func TestTheClientsOfNPMBringEveryCredentialThatTheyCanCarry(t *testing.T) {
	t.Parallel()
	needs(t, "node", "npm")
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/credentials/client.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "client.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	installNode(t, dir, npmClients["sdk"], npmClients["client"], "@a2a-js/sdk@1.3.0")
	change, kinds := credentialKinds(t)
	h := newTestHub(t, func(c *config.Config) { change(c); c.PiSocket = "" })
	joinEcho(t, h)
	type entry struct {
		name, who string // "" for refused
		headers   map[string]string
	}
	var all []entry
	add := func(name, who string, b brought) {
		headers := map[string]string{}
		for key := range b.header {
			headers[key] = b.header.Get(key)
		}
		all = append(all, entry{name, who, headers})
	}
	for _, k := range kinds {
		if k.ways&inHeader == 0 {
			continue
		}
		add(k.name, k.who, k.good())
		for _, wrong := range k.wrong {
			add(k.name+" "+wrong.name, "", wrong.bring())
			add(k.name+" "+wrong.name+", beside a good token", "", wrong.bring().beside(aliceToken))
		}
	}
	var headers []map[string]string
	for _, one := range all {
		headers = append(headers, one.headers)
	}
	for library, refusals := range map[string][]string{
		"sdk":       {"token", "not understood"},
		"client":    {"token", "not understood", "requires authorization"}, // which shows its own words
		"JSONRPC":   {"401"},
		"HTTP+JSON": {"401"},
	} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "client.mjs"), library, "https://"+h.service.Addresses().HTTP)
			cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(string(plainJSON(headers))), t.Output()
			cmd.Env = append(os.Environ(), "NODE_EXTRA_CA_CERTS="+h.config.TLS.Cert)
			out, err := cmd.Output()
			if err != nil {
				t.Fatalf("got %v and %s", err, out)
			}
			var said []struct{ Text, Error string }
			if err := json.Unmarshal(out, &said); err != nil || len(said) != len(all) {
				t.Fatalf("got %d answers in %s (%v), want %d", len(said), out, err, len(all))
			}
			for i, got := range said {
				if want := all[i]; want.who != "" {
					if !strings.Contains(got.Text, want.who+", authenticated true") {
						t.Errorf("%s: got %+v, want it in as %s", want.name, got, want.who)
					}
					continue
				}
				refused := false
				for _, text := range refusals {
					refused = refused || strings.Contains(got.Error, text)
				}
				if !refused || got.Text != "" {
					t.Errorf("%s: got %+v, want it refused with one of %q", all[i].name, got, refusals)
				}
			}
		})
	}
}
