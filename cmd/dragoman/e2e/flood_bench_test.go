package e2e

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"golang.org/x/crypto/ssh"
)

func niced(program string, args ...string) *exec.Cmd {
	return exec.Command("nice", append([]string{"-n", "19", program}, args...)...)
}

// floodCase is a credential that a hub refuses, or takes, at a cost.
type floodCase struct {
	name   string
	header http.Header
	taken  bool
}

// guardedHub starts a hub with tokens, SSH keys, which may register, and issuers of JWTs, and
// returns what a flood of it can consist of.
func guardedHub(b *testing.B) (*benchHub, []floodCase) {
	b.Helper()
	makeKey := func(key crypto.Signer, err error) crypto.Signer {
		if err != nil {
			b.Fatal(err)
		}
		return key
	}
	newED := func() crypto.Signer {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return makeKey(key, err)
	}
	newP256 := func() crypto.Signer {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		return makeKey(k, err)
	}
	newRSA := func(bits int) crypto.Signer { k, err := rsa.GenerateKey(rand.Reader, bits); return makeKey(k, err) }
	issuerRSA, issuerP256, secret := newRSA(2048), newP256(), []byte(strings.Repeat("secret", 8))

	var cases []floodCase
	var keys strings.Builder
	for _, c := range []struct {
		name  string
		key   crypto.Signer
		known bool
	}{
		{"ed25519 known", newED(), true}, {"ed25519 unknown", newED(), false}, {"P-256 known", newP256(), true}, {"P-256 unknown", newP256(), false},
		{"RSA-2048 known", newRSA(2048), true}, {"RSA-2048 unknown", newRSA(2048), false},
		{"RSA-4096 known", newRSA(4096), true}, {"RSA-4096 unknown", newRSA(4096), false},
	} {
		signer, err := ssh.NewSignerFromSigner(c.key)
		if err != nil {
			b.Fatal(err)
		}
		line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
		if c.known {
			fmt.Fprintf(&keys, "principal=\"p%d\" %s\n", len(cases), line)
		}
		cases = append(cases, floodCase{"ssh " + c.name, badSignature(b, signer, line), false})
	}
	cases = append(cases, floodCase{"token", http.Header{"Authorization": {"Bearer wrong"}}, false}, floodCase{"good token", http.Header{"Authorization": {"Bearer alice"}}, true})
	for _, c := range []struct {
		method jwt.SigningMethod
		key    any
		issuer string
	}{{jwt.SigningMethodHS256, secret, "hmac"}, {jwt.SigningMethodRS256, issuerRSA, "keys"}, {jwt.SigningMethodES256, issuerP256, "keys"}} {
		token := jwt.NewWithClaims(c.method, jwt.MapClaims{"iss": c.issuer, "aud": "hub", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix()})
		token.Header["kid"] = c.method.Alg()
		text, err := token.SignedString(c.key)
		if err != nil {
			b.Fatal(err)
		}
		cases = append(cases, floodCase{"jwt " + c.method.Alg(), http.Header{"Authorization": {"Bearer " + text[:len(text)-8] + "AAAAAAAA"}}, false})
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{
		{Key: issuerRSA.Public(), KeyID: "RS256", Use: "sig"}, {Key: issuerP256.Public(), KeyID: "ES256", Use: "sig"},
	}})
	if err != nil {
		b.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(set) }))
	b.Cleanup(server.Close)

	dir := b.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return path
	}
	h := startBenchHub(b, "", fmt.Sprintf(`limits: {history_bytes: 0}
auth:
  tokens: %s
  ssh_keys: %s
  registration: pending
  jwt:
    - {issuer: hmac, audience: hub, secret_file: %s}
    - {issuer: keys, audience: hub, jwks: %q}
`, tokensFile(b, "alice", "shout"), write("keys", keys.String()), write("secret", string(secret)), server.URL))
	h.join(b, "shout")
	return h, cases
}

// badSignature returns the fields of a signature of something else, which is as good as a real
// one until it is verified.
func badSignature(b *testing.B, signer ssh.Signer, line string) http.Header {
	b.Helper()
	algorithm := signer.PublicKey().Type()
	if algorithm == ssh.KeyAlgoRSA {
		algorithm = ssh.KeyAlgoRSASHA512
	}
	s, err := signer.(ssh.AlgorithmSigner).SignWithAlgorithm(rand.Reader, []byte("something else"), algorithm)
	if err != nil {
		b.Fatal(err)
	}
	return http.Header{
		"X-Ssh-Pubkey": {line}, "X-Ssh-Timestamp": {strconv.FormatInt(time.Now().Unix(), 10)}, "X-Ssh-Nonce": {rand.Text()},
		"X-Ssh-Signature": {base64.StdEncoding.EncodeToString(ssh.Marshal(*s))},
	}
}

func (h *benchHub) flood(transport string, c floodCase, atOnce int) credentialFlood {
	f := credentialFlood{Header: c.header, AtOnce: atOnce, Taken: c.taken}
	if transport == "grpc" {
		f.GRPC = h.GRPC
	} else {
		f.HTTP = h.HTTP
	}
	return f
}

// BenchmarkFlood measures how much of a core a hub spends on a flood of bad credentials, by
// credential and transport, and on one of good tokens. An operation is half a second.
func BenchmarkFlood(b *testing.B) {
	h, cases := guardedHub(b)
	for _, transport := range []string{"grpc", "http"} {
		for _, c := range cases {
			b.Run(transport+"/"+c.name, func(b *testing.B) {
				f := startFlooder(b, h.flood(transport, c, 16))
				n, began := 0, h.cpu(b)
				for b.Loop() {
					n += f.during(b, func() { time.Sleep(500 * time.Millisecond) })
				}
				b.ReportMetric((h.cpu(b)-began).Seconds()/b.Elapsed().Seconds(), "cores")
				b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "calls/s")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// BenchmarkNeighbourOfAFlood asks one question at a time while another client, of low priority,
// sends bad credentials as fast as the hub refuses them: in turns with a client that does
// nothing, and with one whose calls the hub takes. An operation is a turn of each.
func BenchmarkNeighbourOfAFlood(b *testing.B) {
	h, cases := guardedHub(b)
	find := func(name string) floodCase {
		for _, c := range cases {
			if c.name == name {
				return c
			}
		}
		b.Fatalf("no case %s", name)
		return floodCase{}
	}
	for _, asking := range []string{"rest", "coven"} {
		for _, transport := range []string{"grpc", "http"} {
			for _, name := range []string{"ssh ed25519 unknown", "ssh P-256 unknown", "ssh RSA-4096 known", "jwt ES256"} {
				b.Run(asking+" beside "+transport+"/"+name, func(b *testing.B) {
					victim := &asked{name: "victim", benchHub: h, token: "alice"}
					victim.ask = map[string]func(*testing.B, *asked) func(context.Context) error{"rest": askREST, "coven": askCoven}[asking](b, victim)
					bad, good := startFlooder(b, h.flood(transport, find(name), 64)), startFlooder(b, h.flood(transport, find("good token"), 64))
					const turn = 500 * time.Millisecond
					ask := func(into *[]time.Duration) func() {
						return func() {
							for end := time.Now().Add(turn); time.Now().Before(end); {
								began := time.Now()
								if err := victim.ask(b.Context()); err != nil {
									b.Fatal(err)
								}
								*into = append(*into, time.Since(began))
							}
						}
					}
					var quiet, beside, loaded []time.Duration
					ask(new([]time.Duration))()
					refused, taken := 0, 0
					for b.Loop() {
						ask(&quiet)()
						refused += bad.during(b, ask(&beside))
						time.Sleep(waitIdle)
						taken += good.during(b, ask(&loaded))
						time.Sleep(waitIdle)
					}
					for name, all := range map[string][]time.Duration{"quiet": quiet, "flood": beside, "good": loaded} {
						b.ReportMetric(micros(percentile(all, .5)), "p50-µs-"+name)
						b.ReportMetric(micros(percentile(all, .99)), "p99-µs-"+name)
					}
					b.ReportMetric(float64(percentile(beside, .99))/float64(percentile(quiet, .99)), "p99-flood:quiet")
					b.ReportMetric(float64(percentile(beside, .99))/float64(percentile(loaded, .99)), "p99-flood:good")
					b.ReportMetric(float64(refused)/(float64(b.N)*turn.Seconds()), "refused/s")
					b.ReportMetric(float64(taken)/(float64(b.N)*turn.Seconds()), "taken/s")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
