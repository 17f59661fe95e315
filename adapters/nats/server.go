package nats

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Sync says when the embedded server writes to the disk itself.
type Sync string

// The sync policies. An external server has a policy of its own.
const (
	// SyncInterval acknowledges a write once the operating system has it, and flushes to
	// the disk every two minutes. The write survives the end of the process; a loss of
	// power loses what was written since the last flush.
	SyncInterval Sync = "interval"
	// SyncAlways acknowledges a write once the disk has it. The write survives a loss of
	// power; every batch costs a flush.
	SyncAlways Sync = "always"
)

// ParseSync reads the name of a policy; "" is SyncInterval.
func ParseSync(name string) (Sync, error) {
	switch s := Sync(name); s {
	case "":
		return SyncInterval, nil
	case SyncInterval, SyncAlways:
		return s, nil
	}
	return "", fmt.Errorf("unknown sync policy %q: use interval or always", name)
}

// payload bounds a message, as NATS servers do by default. Longer ones are sent in parts.
const payload = 1 << 20

// embed starts a server in this process, on the files in a directory. It listens for nobody but the other servers of
// its cluster.
func (j *Journal) embed(o Options, store, name string) error {
	if err := os.MkdirAll(filepath.Dir(store), 0o700); err != nil {
		return fmt.Errorf("making the data directory: %w", err)
	}
	opts := &server.Options{
		ServerName: "dragoman", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		JetStream: true, StoreDir: store, DisableJetStreamBanner: true,
		JetStreamMaxStore: 1 << 50, // the streams have limits, which may be lowered at a start
		MaxPayload:        payload, MaxPending: 64 << 20,
		SyncAlways: o.Sync == SyncAlways,
	}
	if o.Cluster != nil {
		if err := o.Cluster.join(opts, name); err != nil {
			return err
		}
		j.user, j.password = opts.Users[0].Username, opts.Users[0].Password
	}
	var err error
	if j.server, err = server.NewServer(opts); err != nil {
		return fmt.Errorf("making the embedded NATS server: %w", err)
	}
	j.server.SetLogger(&serverLog{log: j.log, said: map[string]*repeated{}}, false, false)
	j.server.Start()
	if !j.server.ReadyForConnections(10 * time.Second) {
		return errors.New("the embedded NATS server did not start within 10 s")
	}
	return nil
}

// dial connects to the embedded server, or to the one at url.
func (j *Journal) dial(ctx context.Context, url string, more ...nats.Option) (*nats.Conn, error) {
	opts := []nats.Option{nats.Name("dragoman"), nats.MaxReconnects(-1)}
	if j.server != nil {
		opts = append(opts, nats.InProcessServer(j.server), nats.UserInfo(j.user, j.password))
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, nats.Timeout(time.Until(deadline)))
	}
	nc, err := nats.Connect(url, append(opts, more...)...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %q: %s", Redacted(url), strings.ReplaceAll(err.Error(), url, Redacted(url)))
	}
	return nc, nil
}

var userinfo = regexp.MustCompile(`(^|,\s*|//)[^@/,]*@`)

// Redacted returns the address of a server, or several separated by commas, without user,
// password and token, for logs and error messages.
func Redacted(url string) string { return userinfo.ReplaceAllString(url, "${1}xxxxx@") }
