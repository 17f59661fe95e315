package web

import (
	"crypto/tls"
	"io"
	"log"
	"net"
	"net/http"
	"time"

	"github.com/dragoman-hub/dragoman/core/memory"
)

// maxHeaderBytes is the maximum size of the head of a request.
const maxHeaderBytes = 64 << 10

// DefaultMaxBodyBytes is the default size limit of a request body.
const DefaultMaxBodyBytes = 1_000_000

// Options are the settings of a Server. A zero field means its default.
type Options struct {
	// Hosts are names of the server, without port, that a connection over loopback may ask
	// for besides localhost, 127.0.0.1 and [::1]. If there are any, other connections must
	// ask for one of them or an IP address too; else they may ask for any name.
	Hosts []string
	// Origins are those of pages, besides the server's own, that may call it, such as
	// "https://console.example.com". They get CORS headers.
	Origins []string
	// Pages are paths of static pages, which a link on any site may open: a GET of a whole document
	// that is navigated to. One that ends with a slash includes all paths below it, except for "/".
	Pages []string
	// NoHead are paths whose GET has an effect, such as to take what waits for a peer: a HEAD of
	// them reaches their route as it is. One that ends with a slash includes all paths below it.
	NoHead []string
	// HostsSetting and OriginsSetting are the user's names for Hosts and Origins, for error
	// messages; default "the allowed hosts" and "the allowed origins".
	HostsSetting, OriginsSetting string

	// MaxBodyBytes is the maximum size of a request body; default 1,000,000.
	MaxBodyBytes int64
	// MaxConnections is the maximum number of open connections, including WebSockets;
	// default 4096. Others get a 503 and are closed, with TLS without it.
	MaxConnections int
	// MaxUnauthenticated, if positive, is how many of them may be without a request that has
	// authenticated: see Authenticated. Beyond it the oldest of those that wait for nothing is
	// closed. AuthTimeout is how long a connection may be without such a request; default 10 s.
	MaxUnauthenticated int
	AuthTimeout        time.Duration
	// Admit, if set, is called for every connection. It reports whether there is room for
	// it, and if not, whether to answer with a 503. It may be called concurrently.
	Admit func(net.Conn) (accept, answer bool)
	// Always are paths, such as those of health checks, that are answered once even to a
	// connection for which there is no room.
	Always []string

	// ReadHeaderTimeout is how long the head of a request may take; default 10 s.
	ReadHeaderTimeout time.Duration
	// BodyTimeout is how long the body of a request may take; default 30 s.
	BodyTimeout time.Duration
	// WriteTimeout is how long a single write of an answer may wait for the client to read;
	// default 30 s. A handler may set a deadline of its own through
	// http.ResponseController, which then applies instead.
	WriteTimeout time.Duration
	// IdleTimeout is how long a connection is kept between requests; default 2 min.
	IdleTimeout time.Duration

	// Memory counts the bodies of requests from their reading until they are answered, or begin to be in a stream; nil counts
	// nothing. While it is full and bodies are more than a quarter of it, requests are answered
	// with 503.
	Memory *memory.Budget

	// TLS, if set, makes this an HTTPS server.
	TLS *tls.Config
	// ErrorLog is where net/http reports errors of connections; default nowhere.
	ErrorLog *log.Logger

	// The callbacks may be called concurrently.

	// OnPanic is called when a handler panics.
	OnPanic func(r *http.Request, value any, stack []byte)
	// OnDenied is called for each request that is refused before its route.
	OnDenied func(r *http.Request, status int, detail string)
	// OnRefused is called for each connection that MaxConnections closes.
	OnRefused func(remote net.Addr)
	// OnUnauthenticated is called for each connection that is closed because no request of it
	// has authenticated. It must not wait.
	OnUnauthenticated func(remote net.Addr)
}

// or returns v, or d if v is zero.
func or[T comparable](v, d T) T {
	var zero T
	if v == zero {
		return d
	}
	return v
}

// withDefaults returns o with defaults in place of zeros.
func (o Options) withDefaults() Options {
	o.HostsSetting = or(o.HostsSetting, "the allowed hosts")
	o.OriginsSetting = or(o.OriginsSetting, "the allowed origins")
	o.MaxBodyBytes = or(o.MaxBodyBytes, DefaultMaxBodyBytes)
	o.MaxConnections = or(o.MaxConnections, 4096)
	o.AuthTimeout = or(o.AuthTimeout, 10*time.Second)
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
		o.Admit = func(net.Conn) (accept, answer bool) { return true, true }
	}
	if o.OnRefused == nil {
		o.OnRefused = func(net.Addr) {}
	}
	if o.OnUnauthenticated == nil {
		o.OnUnauthenticated = func(net.Addr) {}
	}
	return o
}
