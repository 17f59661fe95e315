package web

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// guard checks Host and Origin.
type guard struct {
	hosts   []string // lower case, without port
	origins []string // lower case
	opts    Options
}

// newGuard reads the lists of o.
func newGuard(o Options) guard {
	g := guard{opts: o}
	for _, h := range o.Hosts {
		g.hosts = append(g.hosts, hostname(h))
	}
	for _, origin := range o.Origins {
		g.origins = append(g.origins, strings.TrimSuffix(strings.ToLower(origin), "/"))
	}
	return g
}

// refusal is why a request is refused.
type refusal struct {
	status       int
	code, detail string
}

// host refuses a request whose Host is not a name of the server, such as one from a page
// with a rebound name.
func (g guard) host(r *http.Request) *refusal {
	name := hostname(r.Host)
	if slices.Contains(g.hosts, name) {
		return nil
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	tcp, ok := local.(*net.TCPAddr)
	switch {
	case local != nil && !ok: // such as a Unix socket, which browsers cannot reach
		return nil
	case tcp == nil || tcp.IP.IsLoopback():
		if ip, err := netip.ParseAddr(name); name == "localhost" || err == nil && ip.IsLoopback() {
			return nil
		}
	case len(g.hosts) == 0 || isIP(name):
		return nil
	}
	return &refusal{http.StatusMisdirectedRequest, "not_authorized", fmt.Sprintf(
		"this server does not answer to the host %q; if it should, add that name to %s", name, g.opts.HostsSetting)}
}

// origin refuses requests of other sites' pages. It returns the origin if it is a
// configured one. A request without Origin does not come from the script of a page.
func (g guard) origin(r *http.Request) (string, *refusal) {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return "", nil
	}
	origin := strings.ToLower(values[0])
	if len(values) == 1 {
		if slices.Contains(g.origins, origin) {
			return values[0], nil
		}
		if u, err := url.Parse(origin); err == nil && u.Host != "" && sameHost(u, r.Host) {
			return "", nil
		}
	}
	return "", &refusal{http.StatusForbidden, "not_authorized", fmt.Sprintf(
		"pages of %q may not call this server; if they should, add that origin to %s", strings.Join(values, ", "), g.opts.OriginsSetting)}
}

// site refuses requests that the page of another site caused, with or without Origin: a
// browser says so in Sec-Fetch-Site (Fetch Metadata). Pages of configured origins pass, and so do
// links to Options.Pages.
func (g guard) site(r *http.Request, origin string) *refusal {
	if g.follows(r) {
		return nil
	}
	for _, from := range r.Header.Values("Sec-Fetch-Site") {
		if from = strings.ToLower(strings.TrimSpace(from)); origin == "" && from != "none" && from != "same-origin" {
			return &refusal{http.StatusForbidden, "not_authorized", fmt.Sprintf(
				"a page of another site (Sec-Fetch-Site: %q) may not call this server; if it should, add its origin to %s", from, g.opts.OriginsSetting)}
		}
	}
	return nil
}

// follows reports whether the request is that of a link to a static page. What the other site embeds or
// reads is none, nor is what it sends.
func (g guard) follows(r *http.Request) bool {
	if r.Method != http.MethodGet || len(r.Header.Values("Origin")) > 0 || !slices.Equal(r.Header.Values("Sec-Fetch-Mode"), []string{"navigate"}) ||
		!slices.Equal(r.Header.Values("Sec-Fetch-Dest"), []string{"document"}) {
		return false
	}
	return covers(g.opts.Pages, r.URL.Path)
}

// covers reports whether a path is one of several, or below one that ends with a slash; "/" is itself alone.
func covers(paths []string, path string) bool {
	return slices.ContainsFunc(paths, func(p string) bool {
		return p == path || p != "/" && strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
	})
}

// allow sets the CORS headers for pages of origin, and answers a preflight request. It
// reports whether it has answered.
func allow(w http.ResponseWriter, r *http.Request, origin string) (done bool) {
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "*")
	method := r.Header.Get("Access-Control-Request-Method")
	if r.Method != http.MethodOptions || method == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", method)
	if wanted := r.Header.Get("Access-Control-Request-Headers"); wanted != "" {
		h.Set("Access-Control-Allow-Headers", wanted)
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// hostname returns the name in a Host header or a setting: without port, brackets
// and final dot, in lower case.
func hostname(hostport string) string {
	name := hostport
	if h, _, err := net.SplitHostPort(hostport); err == nil {
		name = h
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	return strings.ToLower(strings.TrimSuffix(name, "."))
}

// sameHost reports whether origin has the given host. The scheme may differ, because a proxy
// may terminate TLS.
func sameHost(origin *url.URL, host string) bool {
	standard := map[string]string{"http": "80", "https": "443"}[origin.Scheme]
	if standard == "" {
		return false
	}
	port := func(p string) string { return or(p, standard) }
	_, p, _ := net.SplitHostPort(host)
	return hostname(origin.Host) == hostname(host) && port(origin.Port()) == port(p)
}

// isIP reports whether name is an IP address, which cannot be rebound.
func isIP(name string) bool {
	_, err := netip.ParseAddr(name)
	return err == nil
}
