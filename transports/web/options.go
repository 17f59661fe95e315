package web

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"
)

// DefaultMaxBodyBytes is the largest request body that is read unless an option
// says otherwise.
const DefaultMaxBodyBytes = 1_000_000

// Options are the settings of a Server. The zero value of each field stands for
// the default named beside it.
type Options struct {
	// Hosts are the names, beside localhost, 127.0.0.1 and [::1], under which the
	// server may be asked for over loopback, without port. If there are any, a
	// connection from elsewhere must use one of them or a bare IP address too;
	// otherwise any name will do for those.
	Hosts []string
	// Origins are those of pages, beside the server's own, that may call it, such
	// as "https://console.example.com". They are answered with the headers that a
	// browser needs to let them (CORS).
	Origins []string
	// HostsSetting and OriginsSetting are how the user calls Hosts and Origins,
	// for messages that say what to change: "the allowed hosts" and "the allowed
	// origins".
	HostsSetting, OriginsSetting string

	// MaxBodyBytes bounds the body of a request: 1,000,000.
	MaxBodyBytes int64
	// MaxHeaderBytes bounds the head of a request: 64 KiB.
	MaxHeaderBytes int
	// MaxConnections is how many connections may be open at a time, those that
	// became WebSockets included: 4096. One more is answered 503 and closed.
	MaxConnections int
	// Admit, if set, is asked of every connection: whether there is room for it, and if
	// not whether there is room to tell it so. It may be called from several goroutines.
	Admit func(net.Conn) (in, told bool)
	// Always are paths that are answered, once, to a connection for which there is no
	// room: such as those of health.
	Always []string

	// ReadHeaderTimeout is how long the head of a request may take: 10 s.
	ReadHeaderTimeout time.Duration
	// BodyTimeout is how long the body of a request may take: 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a single write of an answer may wait for the
	// client to read: 30 s. A handler may set a deadline of its own through
	// http.ResponseController; from then on that holds.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection is kept between requests: 2 min.
	IdleTimeout time.Duration

	// TLS, if set, makes this a server of HTTPS.
	TLS *tls.Config
	// ErrorLog is where net/http reports what goes wrong on a connection: nowhere.
	ErrorLog *log.Logger

	// The callbacks may be called from several goroutines.

	// OnPanic is told of a handler that panicked.
	OnPanic func(r *http.Request, value any, stack []byte)
	// OnDenied is told of a request that was refused before it reached a route.
	OnDenied func(r *http.Request, status int, detail string)
	// OnRefused is told of a connection closed for MaxConnections.
	OnRefused func(remote net.Addr)
}

// or returns v, or d where v is the zero value.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// withDefaults returns o with everything unset filled in.
func (o Options) withDefaults() Options {
	o.HostsSetting = or(o.HostsSetting, "the allowed hosts")
	o.OriginsSetting = or(o.OriginsSetting, "the allowed origins")
	o.MaxBodyBytes = or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.MaxHeaderBytes = or(o.MaxHeaderBytes, 64<<10)
	o.MaxConnections = or(o.MaxConnections, 4096)
	o.ReadHeaderTimeout = or(o.ReadHeaderTimeout, 10*time.Second)
	o.BodyTimeout = or(o.BodyTimeout, 30*time.Second)
	o.WriteTimeout = or(o.WriteTimeout, 30*time.Second)
	o.IdleTimeout = or(o.IdleTimeout, 2*time.Minute)
	if o.ErrorLog == nil {
		o.ErrorLog = log.New(io.Discard, "", 0)
	}
	if o.OnPanic == nil {
		o.OnPanic = func(*http.Request, any, []byte) {}
	}
	if o.OnDenied == nil {
		o.OnDenied = func(*http.Request, int, string) {}
	}
	if o.Admit == nil {
		o.Admit = func(net.Conn) (in, told bool) { return true, true }
	}
	if o.OnRefused == nil {
		o.OnRefused = func(net.Addr) {}
	}
	return o
}
