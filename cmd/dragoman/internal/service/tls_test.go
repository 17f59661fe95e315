package service_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// authority issues certificates for a test.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	path string // of its certificate
}

func newAuthority(t *testing.T, name string) *authority {
	t.Helper()
	a := &authority{key: newKey(t), path: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert, err = x509.ParseCertificate(der); err != nil {
		t.Fatal(err)
	}
	writePEM(t, a.path, "CERTIFICATE", der)
	return a
}

// issue writes a certificate and its key to files.
func (a *authority) issue(t *testing.T, name string, change ...func(*x509.Certificate)) (cert, key string) {
	t.Helper()
	own := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, f := range change {
		f(template)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &own.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(own)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, cert, "CERTIFICATE", der)
	writePEM(t, key, "PRIVATE KEY", secret)
	return cert, key
}

func newKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// startHub starts a hub that speaks TLS.
func startHub(t *testing.T, c config.Config) *service.Service {
	t.Helper()
	s, err := service.Start(t.Context(), c, slog.New(slog.NewTextHandler(t.Output(), nil)), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(t.Context(), "the test is over"); err != nil && t.Context().Err() == nil {
			t.Error(err)
		}
	})
	return s
}

// shake connects by TLS and returns the name in the certificate of the hub.
func shake(addr string, roots *authority, change ...func(*tls.Config)) (name string, err error) {
	pool := x509.NewCertPool()
	pool.AddCert(roots.cert)
	o := &tls.Config{RootCAs: pool, ServerName: "localhost"}
	for _, f := range change {
		f(o)
	}
	conn, err := tls.Dial("tcp", addr, o)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(time.Minute))
	return conn.ConnectionState().PeerCertificates[0].Subject.CommonName + " " + conn.ConnectionState().NegotiatedProtocol, nil
}

func TestEveryTCPListenerSpeaksTLSOnly(t *testing.T) {
	a := newAuthority(t, "authority")
	c := config.Local()
	c.TLS.Cert, c.TLS.Key = a.issue(t, "hub")
	at := startHub(t, c).Addresses()
	old := func(o *tls.Config) { o.MaxVersion = tls.VersionTLS12 }
	for _, tt := range []struct {
		name, addr, protocol string
		oldToo               bool
	}{{"gRPC", at.GRPC, "h2", false}, {"HTTP", at.HTTP, "http/1.1", true}, {"pi", at.Pi, "http/1.1", true}} {
		offer := func(o *tls.Config) { o.NextProtos = []string{tt.protocol} }
		if got, err := shake(tt.addr, a, offer); got != "hub "+tt.protocol {
			t.Errorf("%s: got %q, %v, want hub and %s", tt.name, got, err, tt.protocol)
		}
		if _, err := shake(tt.addr, a, offer, old); (err == nil) != tt.oldToo {
			t.Errorf("%s by TLS 1.2: got %v, want it allowed: %v", tt.name, err, tt.oldToo)
		}
		plain, err := net.Dial("tcp", tt.addr)
		if err != nil {
			t.Fatal(err)
		}
		plain.SetDeadline(time.Now().Add(time.Minute))
		io.WriteString(plain, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
		answer, _ := io.ReadAll(plain)
		plain.Close()
		if strings.Contains(string(answer), "200 OK") {
			t.Errorf("%s in clear: got %q, want no answer", tt.name, answer)
		}
	}
}

func TestAClientCertificateIsAPrincipalWhoseURIDecides(t *testing.T) {
	a, other := newAuthority(t, "authority"), newAuthority(t, "other")
	c := config.Local()
	c.TLS.Cert, c.TLS.Key = a.issue(t, "hub")
	c.TLS.ClientCA = a.path
	s := startHub(t, c)
	uri := func(cert *x509.Certificate) {
		cert.URIs = []*url.URL{{Scheme: "spiffe", Host: "example.com", Path: "/alice"}}
	}
	for _, tt := range []struct {
		name string
		by   *authority
		want int
	}{{"", nil, http.StatusUnauthorized}, {"bob", a, http.StatusOK}, {"eve", other, 0}} {
		pool := x509.NewCertPool()
		pool.AddCert(a.cert)
		o := &tls.Config{RootCAs: pool}
		if tt.by != nil {
			pair, err := tls.LoadX509KeyPair(tt.by.issue(t, tt.name, uri))
			if err != nil {
				t.Fatal(err)
			}
			o.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &pair, nil }
		}
		transport := &http.Transport{TLSClientConfig: o}
		resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Get("https://" + s.Addresses().HTTP + "/v1/agents")
		got := 0
		if err == nil {
			got = resp.StatusCode
			resp.Body.Close()
		}
		transport.CloseIdleConnections()
		if got != tt.want {
			t.Errorf("%q: got %d, %v, want %d", tt.name, got, err, tt.want)
		}
	}
}

func TestAReloadReplacesTheCertificateUnlessItIsBad(t *testing.T) {
	a := newAuthority(t, "authority")
	c := config.Local()
	c.GRPCAddr, c.PiAddr = "", ""
	c.TLS.Cert, c.TLS.Key = a.issue(t, "first")
	s := startHub(t, c)
	want := func(name string) {
		t.Helper()
		if got, err := shake(s.Addresses().HTTP, a); got != name+" " {
			t.Errorf("got %q, %v, want %s", got, err, name)
		}
	}
	want("first")
	cert, key := a.issue(t, "second")
	copyFile(t, cert, c.TLS.Cert)
	if err := s.Reload(c); err == nil || !strings.Contains(err.Error(), "tls.key") || !strings.Contains(err.Error(), "the previous certificate stays in use") {
		t.Errorf("with the key of another: got %v, want an error that names tls.key", err)
	}
	want("first")
	copyFile(t, key, c.TLS.Key)
	if err := s.Reload(c); err != nil {
		t.Fatal(err)
	}
	want("second")
	without := c
	without.TLS = config.TLS{}
	if err := s.Reload(without); err == nil {
		t.Error("without TLS: got no error, want that this needs a restart")
	}
	want("second")
}

func TestWhatIsWrongWithTLSNamesItsSetting(t *testing.T) {
	a := newAuthority(t, "authority")
	cert, key := a.issue(t, "hub")
	_, otherKey := a.issue(t, "other")
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		tls  config.TLS
		want []string
	}{
		"no key":        {config.TLS{Cert: cert}, []string{"tls.key is missing"}},
		"no cert":       {config.TLS{ClientCA: a.path}, []string{"tls.cert is missing"}},
		"no file":       {config.TLS{Cert: text + "2", Key: key}, []string{"tls.cert " + text + "2", "no such file"}},
		"another key":   {config.TLS{Cert: cert, Key: otherKey}, []string{"tls.key " + otherKey, "one pair"}},
		"no PEM":        {config.TLS{Cert: text, Key: key}, []string{"tls.cert " + text, "BEGIN CERTIFICATE"}},
		"the wrong one": {config.TLS{Cert: key, Key: cert}, []string{"tls.cert " + key, "no certificate is in it"}},
		"no authority":  {config.TLS{Cert: cert, Key: key, ClientCA: text}, []string{"tls.client_ca " + text}},
	} {
		c := config.Local()
		c.TLS = tt.tls
		for _, err := range []error{service.CheckFiles(c), func() error { _, err := service.Start(t.Context(), c, slog.New(slog.DiscardHandler), nil); return err }()} {
			for _, want := range tt.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%s: got %v, want %q", name, err, want)
				}
			}
		}
	}
}

func TestAListenerBeyondThisMachineNeedsTLSAndAuthentication(t *testing.T) {
	const lines = "\n    tls.cert: /path/to/hub.crt\n    tls.key: /path/to/hub.key\n    auth.tokens: /path/to/tokens.yaml"
	on := config.TLS{Cert: "hub.crt", Key: "hub.key"}
	for name, tt := range map[string]struct {
		change func(*config.Config)
		want   string // "" for allowed
	}{
		"neither":        {func(*config.Config) {}, lines},
		"TLS alone":      {func(c *config.Config) { c.TLS = on }, "nobody has to authenticate: use 127.0.0.1, add --insecure if that is what you want, or write into the settings\n    auth.tokens: "},
		"tokens alone":   {func(c *config.Config) { c.Auth.Tokens = "t" }, "nothing is encrypted: use"},
		"both":           {func(c *config.Config) { c.TLS, c.Auth.Tokens = on, "t" }, ""},
		"certificates":   {func(c *config.Config) { c.TLS = on; c.TLS.ClientCA = "ca" }, ""},
		"insecure":       {func(c *config.Config) { c.Insecure = true }, ""},
		"loopback alone": {func(c *config.Config) { c.HTTPAddr = "[::1]:0" }, ""},
	} {
		c := config.Local()
		c.HTTPAddr = "0.0.0.0:0"
		tt.change(&c)
		err := service.CheckListeners(c)
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}
