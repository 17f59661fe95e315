package nats

import (
	"context"
	"fmt"
	"log/slog"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog passes on the log of the embedded server. Its notices become debug messages:
// they report every start and stop.
type serverLog struct{ log *slog.Logger }

var _ server.Logger = serverLog{}

func (l serverLog) say(level slog.Level, format string, v []any) {
	l.log.Log(context.Background(), level, "the embedded NATS server: "+strings.TrimSpace(fmt.Sprintf(format, v...)))
}

// Noticef implements server.Logger.
func (l serverLog) Noticef(format string, v ...any) {
	l.say(slog.LevelDebug, format, v)
}

// Warnf implements server.Logger.
func (l serverLog) Warnf(format string, v ...any) {
	level, text := slog.LevelWarn, fmt.Sprintf(format, v...)
	for _, usual := range usualWarnings {
		if strings.HasPrefix(text, usual) { // the format may be %s
			level = slog.LevelDebug
		}
	}
	l.say(level, format, v)
}

// usualWarnings begin warnings of a server in a cluster that say nothing is wrong: passwords are
// of this process, keys are compared instead of host names, and every start waits for others.
var usualWarnings = []string{
	"Plaintext passwords", "TLS certificate chain and hostname of solicited routes", "Waiting for routing", "JetStream has not established contact", "Metalayer blocking snapshot",
}

// Errorf implements server.Logger.
func (l serverLog) Errorf(format string, v ...any) {
	level, text := slog.LevelError, fmt.Sprintf(format, v...)
	switch {
	case strings.Contains(text, "Authorization Violation"):
		format, v = "%s: the two have different secrets: give all hubs of the cluster the same (cluster.secret_file)", []any{text}
	case strings.HasPrefix(text, "Error trying to connect to route"): // as whenever another hub is away
		level = slog.LevelWarn
	}
	l.say(level, format, v)
}

// Fatalf implements server.Logger.
func (l serverLog) Fatalf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Debugf implements server.Logger. The server does not call it.
func (serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger. The server does not call it.
func (serverLog) Tracef(string, ...any) {}
