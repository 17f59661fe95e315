package e2e

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestEveryRealClientBringsEveryCredentialThatItCanCarry comes in over every surface with every
// credential of its client: the right one is who it should be, a wrong one is refused in the words of
// the dialect, beside a good token too. make test brings one credential over each surface, and another over the
// next.
func TestEveryRealClientBringsEveryCredentialThatItCanCarry(t *testing.T) {
	t.Parallel()
	change, kinds := credentialKinds(t)
	var log output
	h, err := newCredentialHub(newLoggingHub(t, slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}), change))
	if err != nil {
		t.Fatal(err)
	}
	joinEcho(t, h.testHub)
	t.Run("cells", func(t *testing.T) {
		for i, s := range surfaces() {
			can := slices.DeleteFunc(slices.Clone(kinds), func(k credentialKind) bool { return s.carries&k.ways == 0 })
			if testing.Short() {
				i %= len(can)
				can = can[i : i+1]
			}
			for _, k := range can {
				t.Run(s.name+"/"+k.name, func(t *testing.T) {
					if s.waits {
						t.Parallel()
					}
					if who, err := s.enter(t, h, h.noted(k.good), k.who); err != nil || !strings.HasPrefix(who, k.who+",") {
						t.Errorf("got %q, %v, want %s", who, err, k.who)
					}
					for _, wrong := range k.wrong {
						if testing.Short() && s.waits {
							break
						}
						s.refuses(t, h, k, wrong)
					}
				})
			}
		}
	})
	places := map[string]string{"the log": log.String()}
	for _, path := range []string{"/metrics", "/v1/audit", "/v1/hub", "/v1/principals", "/v1/tasks"} {
		places["GET "+path] = h.get(t, path)
	}
	audited := []string{`"principal":"","act":"connect","object":"grpc 127.0.0.1","outcome":"unauthenticated"`}
	if !testing.Short() {
		audited = append(audited, `"principal":"carol","act":"connect","object":"grpc 127.0.0.1","outcome":"ok"`, `"principal":"emma","act":"connect","object":"mcp 127.0.0.1","outcome":"ok"`)
	}
	for _, want := range audited {
		if got := places["GET /v1/audit"]; !strings.Contains(got, want) {
			t.Errorf("the audit: got no %s in %d lines", want, strings.Count(got, "\n"))
		}
	}
	for place, text := range places {
		h.wantNoSecret(t, place, text)
	}
}

// refuses checks that a wrong credential is refused, alone and beside a good token.
func (s surface) refuses(t *testing.T, h *credentialHub, k credentialKind, wrong wrongCredential) {
	t.Helper()
	isToken := k.ways&(inCertificate|inSignature) == 0
	says := regexp.QuoteMeta(wrong.says)
	if isToken && s.says != "" {
		says = s.says
	}
	refused := func(err error) bool {
		if wrong.breaks {
			return isBroken(err)
		}
		return s.isRefusal(err, says)
	}
	who, err := s.enter(t, h, h.noted(wrong.bring), k.who)
	if !refused(err) {
		t.Errorf("%s: got %q, %v, want it refused with %q", wrong.name, who, err, says)
	}
	if err != nil {
		h.wantNoSecret(t, "the refusal", err.Error())
	}
	if s.carries&inHeader == 0 {
		return
	}
	if isToken && s.says == "" {
		says = "the tokens in Authorization, X-API-Key and the subprotocol differ: send one of them"
	}
	if who, err = s.enter(t, h, h.noted(func() brought { return wrong.bring().beside(aliceToken) }), k.who); !refused(err) {
		t.Errorf("%s, beside a good token: got %q, %v, want it refused with %q", wrong.name, who, err, says)
	}
}

// noted returns the credential, and keeps what is secret in it.
func (h *credentialHub) noted(bring func() brought) func() brought {
	return func() brought {
		b := bring()
		h.mu.Lock()
		defer h.mu.Unlock()
		for _, name := range []string{"Authorization", "X-Api-Key", "X-Ssh-Signature", "X-Ssh-Nonce"} {
			value := b.header.Get(name)
			if _, token, scheme := strings.Cut(value, " "); scheme {
				value = token
			}
			h.secrets[value] = true
			if parts := strings.Split(value, "."); len(parts) == 3 {
				h.secrets[parts[2]] = true // the signature of a JWT
			}
		}
		for _, one := range b.protocols {
			if token, is := strings.CutPrefix(one, "dragoman.token."); is {
				h.secrets[token] = true
			}
		}
		return b
	}
}

// wantNoSecret checks that no credential that was brought is in a text.
func (h *credentialHub) wantNoSecret(t *testing.T, place, text string) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	for secret := range h.secrets {
		if len(secret) > 10 && strings.Contains(text, secret) {
			t.Errorf("%s: got %q in it, want no credential: %.2000s", place, secret, text)
		}
	}
}

// get returns what an operator gets.
func (h *credentialHub) get(t *testing.T, path string) string {
	t.Helper()
	c := &http.Client{Transport: h.carrier(t, always(bearerToken(rootToken)))}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.at()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d and %s, %v, want 200", path, resp.StatusCode, text, err)
	}
	return string(text)
}

//go:generate go test -count=1 -run "^TestTheTableOfCredentialsIsCurrent$" . -update-docs

// The table in docs/authentication.md, between these lines, is made from the surfaces.
const (
	credentialsPage  = "../../../docs/authentication.md"
	credentialsBegin = "<!-- The table is generated by \"make gen\" from the surfaces that are tested. -->\n"
	credentialsEnd   = "\n<!-- The end of the table. -->\n"
)

func TestTheTableOfCredentialsIsCurrent(t *testing.T) {
	var table strings.Builder
	columns := []struct {
		way  way
		head string
	}{
		{inCertificate, "certificate"}, {inSignature, "SSH signature"}, {inHeader, "token or JWT in a header"}, {inSubprotocol, "in a subprotocol"},
		{inBare, "without a scheme"}, {inToken, "`--token`"}, {inKernel, "Unix user"},
	}
	row := func(name string, cell func(i int) string) {
		table.WriteString("| " + name + " |")
		for i := range columns {
			if text := cell(i); text != "" {
				table.WriteString(" " + text)
			}
			table.WriteString(" |")
		}
		table.WriteString("\n")
	}
	table.WriteString("\n")
	row("client", func(i int) string { return columns[i].head })
	table.WriteString("|---" + strings.Repeat("|---", len(columns)) + "|\n")
	for _, s := range surfaces() {
		row(s.name, func(i int) string {
			if s.carries&columns[i].way != 0 {
				return "yes"
			}
			return ""
		})
	}
	page, err := os.ReadFile(credentialsPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(page), credentialsBegin)
	_, after, ended := strings.Cut(rest, credentialsEnd)
	if !found || !ended {
		t.Fatal("docs/authentication.md: got no place for the table")
	}
	want := before + credentialsBegin + table.String() + credentialsEnd + after
	switch {
	case want == string(page):
	case !*updateDocs:
		t.Error("the table in docs/authentication.md is outdated: run make gen")
	default:
		if err := os.WriteFile(credentialsPage, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
