package e2e

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
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

// The published SDK of Parallax takes credentials of gRPC: a certificate, and metadata.
func TestTheSDKOfParallaxBringsEveryCredentialThatItCanCarry(t *testing.T) {
	t.Parallel()
	dir := installSDK(t, "credentials.cjs")
	change, kinds := credentialKinds(t)
	h := newTestHub(t, func(c *config.Config) { change(c); c.PiSocket = "" })
	type agent struct {
		ID          string            `json:"id"`
		Headers     map[string]string `json:"headers"`
		Certificate string            `json:"certificate,omitempty"`
		Key         string            `json:"key,omitempty"`
	}
	type expected struct{ name, who, says string }
	var agents []agent
	var want []expected
	add := func(name, who, says string, b brought) {
		a := agent{ID: who, Headers: map[string]string{}}
		if who == "alice" || who == "" { // she may register any
			a.ID = fmt.Sprintf("sdk-%d", len(agents))
		}
		for key := range b.header {
			a.Headers[key] = b.header.Get(key)
		}
		if b.certificate != nil {
			key, err := x509.MarshalPKCS8PrivateKey(b.certificate.PrivateKey)
			if err != nil {
				t.Fatal(err)
			}
			a.Certificate = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: b.certificate.Certificate[0]}))
			a.Key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}))
		}
		agents, want = append(agents, a), append(want, expected{name, who, says})
	}
	for _, k := range kinds {
		if k.ways&inAnyHeader == 0 {
			continue
		}
		add(k.name, k.who, "", k.good())
		for _, wrong := range k.wrong {
			add(k.name+" "+wrong.name, "", wrong.says, wrong.bring())
			add(k.name+" "+wrong.name+", beside a good token", "", "UNA", wrong.bring().beside(aliceToken)) // UNAUTHENTICATED, or UNAVAILABLE where the handshake fails
		}
	}
	cmd := exec.Command("node", "credentials.cjs")
	cmd.Dir, cmd.Stdin, cmd.Stderr = dir, strings.NewReader(string(plainJSON(agents))), t.Output()
	cmd.Env = append(os.Environ(), "HUB="+h.service.Addresses().GRPC, "CA="+h.config.TLS.Cert)
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	var said []string
	if err := json.NewDecoder(out).Decode(&said); err != nil || len(said) != len(want) {
		t.Fatalf("got %q (%v), want %d answers", said, err, len(want))
	}
	for i, w := range want {
		if w.who == "" {
			if said[i] == "" || !strings.Contains(said[i], w.says) {
				t.Errorf("%s: got %q, want it refused with %q", w.name, said[i], w.says)
			}
			continue
		}
		a, _ := h.service.Hub().Agent(core.Principal{Operator: true}, core.AgentID(agents[i].ID))
		if said[i] != "" || a.Principal.ID != w.who || !a.Principal.Authenticated {
			t.Errorf("%s: got %q and %+v, want it in as %s", w.name, said[i], a.Principal, w.who)
		}
	}
}
