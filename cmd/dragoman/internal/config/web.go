package config

import (
	"cmp"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strconv"
	"strings"
)

// hostName matches a name of the domain name system in ASCII, and what some systems have as names.
var hostName = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

// cleanHost returns a host that requests may ask for as the listeners compare it: a name or an IP address, in lower
// case, without port. wrong says what to write instead of what cannot be one.
func cleanHost(text string) (clean, wrong string) {
	host := text
	if u, err := url.Parse(text); err == nil && u.Host != "" {
		return "", instead("it is a URL", u.Hostname())
	}
	if before, _, path := strings.Cut(text, "/"); path {
		return "", instead("it has a path", before)
	}
	if strings.HasPrefix(text, "[") || strings.Count(text, ":") == 1 {
		name, port, err := net.SplitHostPort(text)
		switch bare := strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"); {
		case err == nil && !isPort(port):
			return "", instead(fmt.Sprintf("%q is no port from 1 to 65535, and ports are not compared", port), name)
		case err == nil:
			host = name
		case "["+bare+"]" == text: // without a port
			host = bare
		}
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	return host, wrongHost(host)
}

// cleanOrigin returns an origin of pages as the listeners compare it, in lower case. wrong says what to write instead of what cannot be one: a browser sends
// scheme://host, and the port unless it is that of the scheme.
func cleanOrigin(text string) (clean, wrong string) {
	u, wrong := parseOrigin(text)
	if wrong != "" {
		return "", wrong
	}
	u.Scheme, u.Host = strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	bare := u.Scheme + "://" + u.Host
	standard := map[string]string{"http": "80", "https": "443"}[u.Scheme]
	switch {
	case u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return "", instead("an origin has no user, path or query", bare)
	case u.Port() != "" && !isPort(u.Port()), strings.HasSuffix(u.Host, ":"):
		return "", "its port is no number from 1 to 65535"
	case standard != "" && u.Port() == standard:
		return "", instead("browsers leave out the port "+standard, strings.TrimSuffix(bare, ":"+standard))
	}
	return bare, wrongHost(u.Hostname())
}

// parseOrigin reads an origin as a URL, which has a host if nothing is wrong.
func parseOrigin(text string) (u *url.URL, wrong string) {
	u, err := url.Parse(text)
	switch {
	case text == "null" || err == nil && u.Scheme == "file":
		return nil, "pages that are files, or in a sandbox, have no origin of their own: serve the page by http"
	case !strings.Contains(text, "://"):
		rest, _, _ := strings.Cut(text, "/")
		return nil, instead("the scheme is missing", "https://"+rest)
	case err != nil && strings.Contains(err.Error(), "invalid port"):
		return nil, "its port is no number from 1 to 65535"
	case err != nil || u.Host == "" || u.Hostname() == "":
		return nil, "want scheme://host or scheme://host:port, such as https://console.example.com"
	}
	return u, ""
}

// wrongHost says what is wrong with the host of a setting; "" if nothing is.
func wrongHost(host string) string {
	_, err := netip.ParseAddr(host)
	switch {
	case err == nil || hostName.MatchString(host) && strings.Trim(host, "0123456789.") != "":
		return ""
	case strings.ContainsAny(host, "*?"):
		return "wildcards are not supported: write each name"
	case strings.ContainsFunc(host, func(r rune) bool { return r >= 0x80 }):
		return "browsers send such a name in ASCII: write it as that, which begins with xn--"
	}
	return "want a name such as hub.example.com, or an IP address"
}

// instead says what is wrong, and what to write if that is a host or an origin itself.
func instead(why, text string) string {
	_, host, origin := strings.Cut(text, "://")
	if !origin {
		host = text
	}
	if u, err := url.Parse("//" + host); err != nil || wrongHost(cmp.Or(u.Hostname(), "*")) != "" {
		return why
	}
	return why + ": write " + text
}

// isPort reports whether a text is a port that a browser can connect to.
func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && 1 <= n && n <= 65535
}
