package nats_test

import (
	"context"
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/nats"
)

func TestAWaitSaysWhoIsThere(t *testing.T) {
	for _, tt := range []struct {
		wait nats.Wait
		want string
	}{
		{nats.Wait{Here: 1, Of: 3, Needed: 2, Absent: "it has not heard b, c"}, "waiting for a majority: 1 of 3 hubs is here, 2 are needed; it has not heard b, c"},
		{nats.Wait{Here: 2, Of: 5, Needed: 3}, "waiting for a majority: 2 of 5 hubs are here, 3 are needed"},
		{nats.Wait{Here: 2, Of: 3, Needed: 3, First: true}, "waiting for the first start of a cluster: 2 of 3 hubs are here, 3 are needed"},
		{nats.Wait{Here: 3, Of: 3, Needed: 3, First: true}, "waiting for an election, which takes up to 10 s: 3 of 3 hubs are here"},
	} {
		if got := tt.wait.Full(); got != tt.want {
			t.Errorf("%+v: got %q, want %q", tt.wait, got, tt.want)
		}
	}
}

func TestAHubWithoutAMajorityTellsAtOnceWhatItWaitsFor(t *testing.T) {
	at := addresses(t, 3)
	o := member(t.TempDir(), "a", "open sesame", at, 0)
	waitUntilTold(t, waits{o, "waiting for the first start of a cluster: 1 of 3 hubs is here, 3 are needed; it has heard nobody at " + at[1] + ", " + at[2]})
}

func TestTwoOfThreeHubsNameTheAddressOfTheThird(t *testing.T) {
	at := addresses(t, 3)
	want := "waiting for the first start of a cluster: 2 of 3 hubs are here, 3 are needed; it has heard nobody at " + at[2]
	waitUntilTold(t, waits{member(t.TempDir(), "a", "open sesame", at, 0), want}, waits{member(t.TempDir(), "b", "open sesame", at, 1), want})
}

func TestHubsWithCertificatesOfDifferentAuthoritiesSaySo(t *testing.T) {
	at := addresses(t, 3)
	differ := func(n int) waits {
		o := member(t.TempDir(), "hub-"+strconv.Itoa(n), "open sesame", at, n)
		o.Cluster.TLS = selfSigned(t)
		return waits{o, "the certificate of the hub at " + at[1-n] + " is not accepted: x509: certificate signed by unknown authority"}
	}
	waitUntilTold(t, differ(0), differ(1))
}

// selfSigned returns the TLS settings of a hub whose certificate is its own authority.
func selfSigned(t *testing.T) *tls.Config {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	about := x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(nil, &about, &about, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	own, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(own)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		RootCAs: trusted, ClientCAs: trusted, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

// waitUntilTold opens journals that wait for other hubs, until each has told why.
func waitUntilTold(t *testing.T, all ...waits) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	enough := errors.New("all have told")
	var left atomic.Int32
	left.Store(int32(len(all)))
	var opening sync.WaitGroup
	for _, one := range all {
		told, last := sync.OnceFunc(func() {
			if left.Add(-1) == 0 {
				stop(enough)
			}
		}), ""
		one.by.Waiting = func(w nats.Wait) {
			if last = w.Full(); strings.Contains(last, one.want) {
				told()
			}
		}
		opening.Go(func() {
			if _, err := nats.Open(ctx, one.by); !errors.Is(err, enough) || !strings.Contains(err.Error(), "waiting for a majority") {
				t.Errorf("hub %s: got %v and at last %q, want it to wait and to tell %q", one.by.Name, err, last, one.want)
			}
		})
	}
	opening.Wait()
}

// waits is a hub that has to tell why it waits.
type waits struct {
	by   nats.Options
	want string
}
