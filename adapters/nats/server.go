package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
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

// embed starts a server in this process without a listener.
func embed(dir string, sync Sync, bytes int64, log *slog.Logger) (*server.Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the data directory: %w", err)
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "dragoman", DontListen: true, NoSigs: true, NoLog: true, NoSystemAccount: true,
		JetStream: true, StoreDir: filepath.Join(dir, "nats"), DisableJetStreamBanner: true,
		// Twice the retention, since the store drops whole blocks.
		JetStreamMaxStore: 2*bytes + 64<<20,
		MaxPayload:        payload, MaxPending: 64 << 20,
		SyncAlways: sync == SyncAlways,
	})
	if err != nil {
		return nil, fmt.Errorf("making the embedded NATS server: %w", err)
	}
	s.SetLogger(serverLog{log}, false, false)
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		s.Shutdown()
		return nil, errors.New("the embedded NATS server did not start within 10 s")
	}
	return s, nil
}

// connect connects to the embedded server, or to the one at url.
func connect(ctx context.Context, s *server.Server, url string) (*nats.Conn, error) {
	opts := []nats.Option{nats.Name("dragoman"), nats.MaxReconnects(-1)}
	if s != nil {
		opts = append(opts, nats.InProcessServer(s))
	}
	if deadline, ok := ctx.Deadline(); ok {
		opts = append(opts, nats.Timeout(time.Until(deadline)))
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS at %q: %s", Redacted(url), strings.ReplaceAll(err.Error(), url, Redacted(url)))
	}
	return nc, nil
}

var userinfo = regexp.MustCompile(`(^|,\s*|//)[^@/,]*@`)

// Redacted returns the address of a server, or several separated by commas, without user,
// password and token, for logs and error messages.
func Redacted(url string) string { return userinfo.ReplaceAllString(url, "${1}xxxxx@") }
