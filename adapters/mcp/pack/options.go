package pack

import (
	"cmp"
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

// Defaults of [Options].
const (
	DefaultCalls       = 16
	DefaultResultBytes = 4 << 20
	DefaultTimeout     = 60 * time.Second
	DefaultMaxTime     = 300 * time.Second
	// MaxResultBytes is the largest ResultBytes: a line of a child has at most 10 MiB.
	MaxResultBytes = 8 << 20
)

// Options describe one MCP server. Either Dial or URL is set.
type Options struct {
	// Name is the id of the pack, and the beginning of the names of its tools: letters,
	// digits, _ and -.
	Name string
	// Dial starts the server as a child that reads and writes lines. What it writes beyond
	// the limit of its connection comes as a *[link.Reject].
	Dial func(ctx context.Context, args ...string) (link.Conn[[]byte, []byte], error)
	// Command names the program of Dial in errors.
	Command string
	// URL is the endpoint of streamable HTTP, and HTTP the client for it; its CheckRedirect is
	// not used.
	URL  string
	HTTP *http.Client
	// Token returns the bearer token of each request; nil and "" mean none. Its error fails the
	// request.
	Token func() (string, error)

	// Calls is how many calls run at once; others wait. Default 16.
	Calls int
	// ResultBytes is the maximum size of the result of a call; default 4 MiB.
	ResultBytes int
	// Timeout is how long a call may take without progress; default 60 s. MaxTime is how
	// long it may take in all, whatever progress it makes; default 300 s, which is also the
	// most that the hub grants by default.
	Timeout, MaxTime time.Duration
	// Hub is the id of the hub, whose own tools are not offered to it again; "" if it is unknown.
	Hub string
	// Version is the version of the program, for the server.
	Version string
	// Log gets messages for operators, without inputs and results; nil discards them.
	Log *slog.Logger
	// Count adds one to a named counter; nil counts nothing.
	Count func(name string)
}

// check returns what is wrong with the options, and the options with their defaults.
func (o Options) check() (Options, error) {
	switch {
	case o.Name == "" || len(o.Name) > maxName || strings.ContainsFunc(o.Name, wire.NotOfNames) || strings.Contains(o.Name, "."):
		return o, core.NewFault(core.CodeInvalid, "the pack name %q cannot begin the name of a tool: use 1 to %d letters, digits, _ and -", o.Name, maxName)
	case (o.Dial == nil) == (o.URL == ""):
		return o, core.NewFault(core.CodeInvalid, "pack %s: want a command or a url, one of both", o.Name)
	case o.ResultBytes > MaxResultBytes:
		return o, core.NewFault(core.CodeInvalid, "pack %s: results of %d bytes are over the limit of %d", o.Name, o.ResultBytes, MaxResultBytes)
	}
	if o.URL != "" {
		if u, err := url.Parse(o.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return o, core.NewFault(core.CodeInvalid, "pack %s: its url is no http or https address: want https://HOST/PATH", o.Name)
		}
		if o.HTTP == nil {
			return o, core.NewFault(core.CodeInvalid, "pack %s: a url wants an HTTP client", o.Name)
		}
		plain := *o.HTTP
		// A redirect would take the token to another port or scheme of the host, and the
		// arguments of calls anywhere.
		plain.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
		o.HTTP = &plain
	}
	return o.withDefaults(), nil
}

// withDefaults returns the options with the default of each that is not set.
func (o Options) withDefaults() Options {
	o.Calls = cmp.Or(max(0, o.Calls), DefaultCalls)
	o.ResultBytes = cmp.Or(max(0, o.ResultBytes), DefaultResultBytes)
	o.Timeout = cmp.Or(max(0, o.Timeout), DefaultTimeout)
	o.MaxTime = cmp.Or(max(0, o.MaxTime), DefaultMaxTime)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	o.Log = o.Log.With("pack", o.Name)
	if o.Count == nil {
		o.Count = func(string) {}
	}
	if o.Token == nil {
		o.Token = func() (string, error) { return "", nil }
	}
	return o
}

// The names of tools have at most 128 bytes, in MCP and in the hub.
const (
	maxName     = 64
	maxToolName = 128
)
