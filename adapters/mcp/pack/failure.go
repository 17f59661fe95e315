package pack

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"

	"github.com/dragoman-hub/dragoman/core"
)

// named returns how errors name the server: by its pack, and its command or address. What may be
// secret in an address is left out.
func (o Options) named() string {
	name := "the MCP server of pack " + o.Name
	if o.Command != "" {
		return name + " (" + o.Command + ")"
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" {
		return name
	}
	return name + " at " + (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// fail returns a failure of the server: what it did or what became of it.
func (s *server) fail(code core.Code, format string, args ...any) *core.Fault {
	return core.NewFault(code, "%s %s", s.opts.named(), fmt.Sprintf(format, args...))
}

// failUnanswered returns the failure of a server that did not answer before ctx ended.
func (s *server) failUnanswered(ctx context.Context, method string) *core.Fault {
	why := context.Cause(ctx)
	return s.fail(core.CodeUnreachable, "did not answer %s: %s%s", method, why, s.noise()).Because(why)
}

// noise says what the server wrote instead of messages.
func (s *server) noise() string {
	text, _ := s.preamble.Load().(string)
	return text
}

// adviseCommand adds to the failure of a command that has not become a server what to do about it.
func (s *server) adviseCommand(err error) error {
	var f *core.Fault
	if s.opts.Command == "" || !errors.As(err, &f) {
		return err
	}
	advised := *f
	advised.Message += ": correct the command of the pack if it starts no MCP server on stdin and stdout"
	return &advised
}

// failUnreachable returns the failure of a server that no request reaches.
func (s *server) failUnreachable(err error) *core.Fault {
	var inner *url.Error // it repeats the address
	if errors.As(err, &inner) {
		err = inner.Err
	}
	return s.fail(core.CodeUnreachable, "cannot be reached: %s: %s", err, advice(err)).Because(err)
}

// advice says what to do about an error of HTTP.
func advice(err error) string {
	var unknown *net.DNSError
	var untrusted *tls.CertificateVerificationError
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return "start it, or correct the url of the pack"
	case errors.As(err, &unknown):
		return "correct the host in the url of the pack"
	case errors.Is(err, http.ErrSchemeMismatch):
		return "its url begins with http:"
	case errors.As(err, &untrusted):
		return "it needs a certificate for that host that the machine of the hub trusts"
	}
	return "check that it runs, and the url of the pack"
}

// failStatus returns the failure of a server that answered with an HTTP status. began is how the
// body begins, and starting says that no session has begun.
func (s *server) failStatus(resp *http.Response, began string, starting bool) *core.Fault {
	answered := "answered " + resp.Status
	switch status := resp.StatusCode; {
	case status < http.StatusBadRequest:
		return s.fail(core.CodeUnreachable, "%s to %.200q: redirects are not followed, make that the url of the pack if it is right", answered, resp.Header.Get("Location"))
	case status == http.StatusUnauthorized && strings.Contains(resp.Header.Get("WWW-Authenticate"), "resource_metadata"):
		return s.fail(core.CodeNotAuthorized, "%s: give the pack a token that it accepts (token_file). It offers OAuth, which the hub does not support: get the token from whoever runs the server", answered)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return s.fail(core.CodeNotAuthorized, "%s: give the pack a token that it accepts (token_file)", answered)
	case status == http.StatusTooManyRequests:
		return s.fail(core.CodeRateLimited, "%s: call again later", answered)
	case status >= http.StatusInternalServerError:
		return s.fail(core.CodeUnreachable, "%s%s: call again later, or see its log", answered, began)
	case starting:
		return s.fail(core.CodeUnreachable, "%s%s: correct the url of the pack if that is no MCP endpoint (many end in /mcp); servers that have only the HTTP+SSE of 2024-11-05 are not supported",
			answered, began)
	}
	return s.fail(core.CodeUnreachable, "%s%s", answered, began)
}

// beginning returns how the body of an answer that is no message begins, as a part of an error.
func beginning(resp *http.Response, body []byte) string {
	media := resp.Header.Get("Content-Type")
	switch {
	case len(body) == 0 && media == "":
		return " with nothing"
	case media == "":
		media = "something"
	}
	return fmt.Sprintf(" with %.80s that begins %.100q", media, body)
}

// messageOf returns what an error says to a peer: its whole text, unless it is a Fault.
func messageOf(err error) string {
	var f *core.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// down returns why calls fail while there is no server.
func (p *Pack) down(why error) *core.Fault {
	if why == nil || errors.Is(why, context.Canceled) {
		return core.NewFault(core.CodeUnreachable, "%s is down", p.opts.named())
	}
	return core.NewFault(core.CodeUnreachable, "%s: pack %s is down, and its calls fail until that is over", messageOf(why), p.opts.Name)
}
