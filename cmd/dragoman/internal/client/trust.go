package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// transports has a transport for the same files, so that connections are used again.
var transports sync.Map // of *http.Transport, by tlsFiles

// tlsFiles are the paths of the files that a transport is made of.
type tlsFiles struct{ ca, cert, key string }

// transport returns the transport to a hub: one that trusts the authorities of CA beside those
// of the system, and shows the certificate of Cert.
func (p Hub) transport() (*http.Transport, error) {
	if p.Wrong != nil {
		return nil, p.Wrong
	}
	files, err := p.tlsFiles()
	if err != nil {
		return nil, err
	}
	if known, ok := transports.Load(files); ok {
		return known.(*http.Transport), nil
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	if files.ca != "" {
		text, err := edge.ReadFile(files.ca)
		if err != nil {
			return nil, AddressError{Err: fmt.Errorf("--ca (DRAGOMAN_CA): %w", err)}
		}
		roots, err := x509.SystemCertPool()
		if err != nil {
			roots = x509.NewCertPool() // the system has none
		}
		if !roots.AppendCertsFromPEM(text) {
			return nil, AddressError{Err: fmt.Errorf("--ca (DRAGOMAN_CA) %s: no certificate is in it: name a PEM file with that of the hub's authority", files.ca)}
		}
		t.TLSClientConfig.RootCAs = roots
	}
	if files.cert != "" || files.key != "" {
		if files.cert == "" || files.key == "" {
			return nil, AddressError{Err: errors.New("--cert (DRAGOMAN_CERT) and --key (DRAGOMAN_KEY) go together: name the certificate and its private key")}
		}
		own, err := ReadKeyPair(files.cert, files.key)
		if err != nil {
			return nil, AddressError{Err: fmt.Errorf("--cert (DRAGOMAN_CERT) and --key (DRAGOMAN_KEY): %w", err)}
		}
		// It is shown whichever authorities the hub asks for, so that a wrong one is refused and
		// not left out.
		t.TLSClientConfig.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &own, nil }
	}
	known, _ := transports.LoadOrStore(files, t)
	return known.(*http.Transport), nil
}

// tlsFiles returns the files of the hub, without ~.
func (p Hub) tlsFiles() (files tlsFiles, err error) {
	for _, f := range []struct {
		flag, path string
		whole      *string
	}{
		{"--ca (DRAGOMAN_CA)", p.CA, &files.ca},
		{"--cert (DRAGOMAN_CERT)", p.Cert, &files.cert},
		{"--key (DRAGOMAN_KEY)", p.Key, &files.key},
	} {
		if *f.whole, err = config.ExpandHome(f.path); err != nil {
			return tlsFiles{}, AddressError{Err: fmt.Errorf("%s %s: %w", f.flag, f.path, err)}
		}
	}
	return files, nil
}

// httpClient returns a client that follows no redirect: the token is for the hub alone.
func (p Hub) httpClient() (*http.Client, error) {
	t, err := p.transport()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

// guardToken refuses to send a token without TLS beyond this machine.
func (p Hub) guardToken(secure bool, host string) error {
	if strings.ContainsFunc(p.Token, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return AddressError{Err: errors.New("--token (DRAGOMAN_TOKEN): a token has no blanks, line ends or letters beyond ASCII in it: give it as it was printed")}
	}
	if p.Token == "" || secure || p.Insecure || onThisMachine(host) {
		return nil
	}
	return AddressError{Err: fmt.Errorf("the token would cross the network unencrypted to %s: use https in %s, or add --insecure if that is what you want", host, p.Named)}
}

// ReadKeyPair is [tls.LoadX509KeyPair] for files that may begin with a byte order mark.
func ReadKeyPair(cert, key string) (tls.Certificate, error) {
	c, err := edge.ReadFile(cert)
	if err != nil {
		return tls.Certificate{}, err
	}
	k, err := edge.ReadFile(key)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(c, k)
}

// onThisMachine reports whether a host always means this machine.
func onThisMachine(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	ip := net.ParseIP(host)
	return ip.IsLoopback() || host == "localhost" || strings.HasSuffix(host, ".localhost")
}

// encryption returns how to connect to a gRPC address of the hub: by TLS if its URL is https,
// nil for plain text. asked says that the hub has named the address; it must then be the hub
// of the URL.
func (p Hub) encryption(at string, asked bool) (*tls.Config, error) {
	u := &url.URL{}
	if p.URL != "" {
		var err error
		if u, err = hubURL(p.URL, p.Named); err != nil {
			return nil, err
		}
	}
	host, _, err := net.SplitHostPort(at)
	if err != nil {
		host = at
	}
	secure := u.Scheme == "https"
	if err := p.guardToken(secure, host); err != nil || !secure {
		return nil, err
	}
	t, err := p.transport()
	if err != nil {
		return nil, err
	}
	c := t.TLSClientConfig.Clone()
	c.MinVersion, c.NextProtos = tls.VersionTLS13, nil
	if asked {
		c.ServerName = u.Hostname()
	}
	return c, nil
}

// explainTLS returns the error of a connection that failed because of TLS, or because one end
// speaks it and the other does not; nil if it failed for another reason.
func explainTLS(at, flag, why string) error {
	switch {
	case strings.Contains(why, "failed to verify certificate"):
		return fmt.Errorf("the certificate of the hub at %s is not trusted: name its authority with --ca or DRAGOMAN_CA, and write the host that it names in %s (%s)", at, flag, why)
	case strings.Contains(why, "HTTP request to an HTTPS server"):
		return fmt.Errorf("the hub at %s speaks TLS: write https instead of http in %s", at, flag)
	case strings.Contains(why, "HTTP response to HTTPS client"), strings.Contains(why, "first record does not look like a TLS handshake"):
		return fmt.Errorf("the hub at %s speaks no TLS: write http instead of https in %s", at, flag)
	}
	return nil
}
