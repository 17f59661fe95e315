package service

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
)

// encryption has the certificates of all TCP listeners, which a reload replaces. Connections
// keep those that they began with.
type encryption struct{ current atomic.Pointer[certificates] }

// certificates are what the settings below tls name. They are never changed.
type certificates struct {
	own         tls.Certificate
	authorities []*x509.Certificate // of clients
	pool        *x509.CertPool      // the same; nil without any
}

// readTLS reads the files of the settings below tls; nil without a certificate. Every error
// names the setting and says what to do.
func readTLS(c config.Config) (*certificates, error) {
	t := c.TLS
	if t == (config.TLS{}) {
		return nil, nil //nolint:nilnil // no TLS is not an error
	}
	for _, s := range []struct{ key, path, what string }{{"tls.cert", t.Cert, "the certificate of the hub"}, {"tls.key", t.Key, "the key of tls.cert"}} {
		if s.path == "" {
			return nil, fmt.Errorf("%s is missing: name the PEM file with %s, or set nothing below tls", s.key, s.what)
		}
	}
	cert, err := readPEM(c, "tls.cert", t.Cert)
	if err != nil {
		return nil, err
	}
	key, err := readPEM(c, "tls.key", t.Key)
	if err != nil {
		return nil, err
	}
	if len(certificatesIn(cert)) == 0 {
		return nil, fmt.Errorf("%s %s: no certificate is in it: name a PEM file with -----BEGIN CERTIFICATE-----, the hub's own first", c.At("tls.cert"), t.Cert)
	}
	all := &certificates{}
	if all.own, err = tls.X509KeyPair(cert, key); err != nil {
		return nil, fmt.Errorf("%s %s: it is not the unencrypted key of the certificate in %s: name the files of one pair (%s)", c.At("tls.key"), t.Key, t.Cert, strings.TrimPrefix(err.Error(), "tls: "))
	}
	if t.ClientCA == "" {
		return all, nil
	}
	clients, err := readPEM(c, "tls.client_ca", t.ClientCA)
	if err != nil {
		return nil, err
	}
	if all.authorities = certificatesIn(clients); len(all.authorities) == 0 {
		return nil, fmt.Errorf("%s %s: no certificate is in it: name a PEM file with those of the authorities that issue client certificates", c.At("tls.client_ca"), t.ClientCA)
	}
	all.pool = x509.NewCertPool()
	for _, one := range all.authorities {
		all.pool.AddCert(one)
	}
	return all, nil
}

// maxPEMBytes bounds a file of certificates.
const maxPEMBytes = 16 << 20

// readPEM reads a file that a setting names.
func readPEM(c config.Config, key, path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err == nil && info.Size() > maxPEMBytes {
		err = errors.New("it is too large for certificates")
	}
	var data []byte
	if err == nil {
		data, err = edge.ReadFile(path)
	}
	var why *fs.PathError
	if errors.As(err, &why) {
		err = why.Err
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w: name a PEM file that the hub may read", c.At(key), path, err)
	}
	return data, nil
}

// certificatesIn returns the certificates in PEM text.
func certificatesIn(text []byte) (all []*x509.Certificate) {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return all
		}
		if one, err := x509.ParseCertificate(block.Bytes); err == nil && block.Type == "CERTIFICATE" {
			all = append(all, one)
		}
	}
}

// outdated says that a certificate is not valid now, "" if it is.
func (c *certificates) outdated() string {
	switch now := time.Now(); {
	case c == nil || c.own.Leaf == nil:
		return ""
	case now.After(c.own.Leaf.NotAfter):
		return "the certificate has expired on " + c.own.Leaf.NotAfter.UTC().Format(time.RFC3339) + ": renew it, then send SIGHUP"
	case now.Before(c.own.Leaf.NotBefore):
		return "the certificate begins on " + c.own.Leaf.NotBefore.UTC().Format(time.RFC3339) + ": look at the clock"
	}
	return ""
}

// useTLS makes new connections use certificates, which may be nil.
func (s *Service) useTLS(c *certificates) {
	if text := c.outdated(); text != "" {
		s.log.Warn(text, "setting", "tls.cert")
	}
	s.tls.current.Store(c)
}

// on reports whether listeners speak TLS.
func (e *encryption) on() bool { return e.current.Load() != nil }

// clientAuthorities are those of client certificates.
func (c *certificates) clientAuthorities() []*x509.Certificate {
	if c == nil {
		return nil
	}
	return c.authorities
}

// config returns the settings of a listener for a protocol (ALPN); nil without TLS.
func (e *encryption) config(least uint16, protocol string) *tls.Config {
	if !e.on() {
		return nil
	}
	usual := func() *tls.Config {
		now := e.current.Load()
		t := &tls.Config{
			MinVersion: least, NextProtos: []string{protocol}, Certificates: []tls.Certificate{now.own},
			SessionTicketsDisabled: true, // a resumed session would keep a certificate that a reload has refused
		}
		if now.pool != nil {
			t.ClientAuth, t.ClientCAs = tls.VerifyClientCertIfGiven, now.pool
		}
		return t
	}
	t := usual()
	t.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return usual(), nil }
	return t
}
