package nats

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// serverLog passes on the log of the embedded server. Its notices become debug messages:
// they report every start and stop. A server that another one refuses tries again all the time, so
// what it says again within repeatTime is counted and not passed on.
type serverLog struct {
	log *slog.Logger

	mu   sync.Mutex
	said map[string]*repeated // by the text without what changes
}

// repeated is a text that was passed on.
type repeated struct {
	at   time.Time
	more int // how often it came since
}

const (
	repeatTime = time.Minute
	mostSaid   = 64 // texts that are kept
)

var _ server.Logger = (*serverLog)(nil)

func (l *serverLog) say(level slog.Level, format string, v []any) {
	text := strings.TrimSpace(fmt.Sprintf(format, v...))
	if level >= slog.LevelWarn {
		more, is := l.repeats(text)
		if is {
			return
		}
		if more > 0 {
			text += fmt.Sprintf(" (%d more of these since)", more)
		}
	}
	l.log.Log(context.Background(), level, "the embedded NATS server: "+text)
}

// changing is what differs in a text that is said again: ports, numbers of connections and of attempts, though not
// those in the names of hubs and streams.
var changing = regexp.MustCompile(`[: ][0-9]+`)

// repeats reports whether a text came within repeatTime; if not, how often it came after that.
func (l *serverLog) repeats(text string) (more int, is bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	kind := changing.ReplaceAllString(text, "")
	now, before := time.Now(), l.said[kind]
	switch {
	case before == nil && len(l.said) >= mostSaid:
		clear(l.said)
	case before == nil:
	case now.Sub(before.at) < repeatTime:
		before.more++
		return 0, true
	default:
		more = before.more
	}
	l.said[kind] = &repeated{at: now}
	return more, false
}

// Noticef implements server.Logger.
func (l *serverLog) Noticef(format string, v ...any) {
	l.say(slog.LevelDebug, format, v)
}

// Warnf implements server.Logger.
func (l *serverLog) Warnf(format string, v ...any) {
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
func (l *serverLog) Errorf(format string, v ...any) {
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
func (l *serverLog) Fatalf(format string, v ...any) { l.say(slog.LevelError, format, v) }

// Debugf implements server.Logger. The server does not call it.
func (*serverLog) Debugf(string, ...any) {}

// Tracef implements server.Logger. The server does not call it.
func (*serverLog) Tracef(string, ...any) {}
