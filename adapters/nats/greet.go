package nats

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// greetTime is how long the server at an address has to say its name.
	greetTime = 500 * time.Millisecond
	// greetingBytes is the longest greeting of a server.
	greetingBytes = 32 << 10
)

// A greeting is what the server at an address says of itself when another one connects. Its name is "" if
// it says nothing; err tells why.
type greeting struct {
	at, name, cluster string
	err               error
}

// own returns the address at which others reach this server.
func (c *Cluster) own() string { return cmp.Or(c.Advertise, c.Listen) }

// greet connects to the servers at these addresses, and returns what each says.
func (c *Cluster) greet(ctx context.Context, at []string) ([]greeting, error) {
	encrypted := c.TLS
	if encrypted == nil {
		var err error
		if encrypted, err = tlsOf(c.Secret); err != nil {
			return nil, err
		}
	}
	all := make([]greeting, len(at))
	var asked sync.WaitGroup
	for i, at := range at {
		asked.Go(func() {
			all[i].at = at
			all[i].err = all[i].hear(ctx, encrypted)
		})
	}
	asked.Wait()
	return all, nil
}

// hear fills in what the server at the address says.
func (g *greeting) hear(ctx context.Context, encrypted *tls.Config) error {
	ctx, cancel := context.WithTimeout(ctx, greetTime)
	defer cancel()
	conn, err := (&tls.Dialer{Config: encrypted}).DialContext(ctx, "tcp", g.at)
	if err != nil {
		return err
	}
	defer conn.Close()
	if end, _ := ctx.Deadline(); conn.SetReadDeadline(end) != nil {
		return context.DeadlineExceeded
	}
	line, err := bufio.NewReaderSize(conn, greetingBytes).ReadSlice('\n')
	if err != nil {
		return err
	}
	info, is := bytes.CutPrefix(line, []byte("INFO "))
	var says struct {
		Name    string `json:"server_name"`
		Cluster string `json:"cluster"`
	}
	if !is || json.Unmarshal(info, &says) != nil || says.Name == "" {
		return errors.New("it is no NATS server")
	}
	g.name, g.cluster = says.Name, says.Cluster
	return nil
}

// mistake returns what is to be changed so that this hub and the one that was greeted make a cluster; ""
// if that is nothing, as where nobody is there.
func (g *greeting) mistake(c *Cluster) string {
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.Is(g.err, errOtherSecret):
		return fmt.Sprintf("this hub and the one at %s have different secrets: give all hubs of the cluster the same (cluster.secret_file)", g.at)
	case errors.As(g.err, &certificate):
		return fmt.Sprintf("the certificate of the hub at %s is not accepted: %v: see cluster.tls", g.at, certificate.Err)
	case g.err == nil && g.cluster != c.Name:
		return fmt.Sprintf("hub %s at %s is in the cluster %q, but this hub is in %q: set cluster.name to the same value on all hubs", g.name, g.at, g.cluster, c.Name)
	}
	return ""
}
