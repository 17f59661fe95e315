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
func (l serverLog) Noticef(format string, v ...any) { l.say(slog.LevelDebug, format, v) }

// Warnf implements server.Logger.
func (l serverLog) Warnf(format string, v ...any) { l.say(slog.LevelWarn, format, v) }

// Errorf implements server.Logger.
func (l serverLog) Errorf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Fatalf implements server.Logger.
func (l serverLog) Fatalf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Debugf implements server.Logger. The server does not call it.
func (serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger. The server does not call it.
func (serverLog) Tracef(string, ...any) {}
