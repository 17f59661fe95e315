package webhook

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// Targets restricts the targets of webhooks. Whoever names one makes the hub
// send requests, which reach what the hub reaches: machines behind its firewall, services
// of its own machine, and the metadata of a cloud.
type Targets uint8

// The targets of webhooks.
const (
	// TargetsNone is for no Sender: nothing is delivered.
	TargetsNone Targets = iota + 1
	// TargetsPublic allows https to addresses of the public Internet.
	TargetsPublic
	// TargetsAny allows http and https to any address.
	TargetsAny
)

var targetNames = map[Targets]string{TargetsNone: "none", TargetsPublic: "public", TargetsAny: "any"}

// String returns the name.
func (t Targets) String() string { return targetNames[t] }

// ParseTargets reads a name.
func ParseTargets(name string) (Targets, error) {
	for t, known := range targetNames {
		if name == known {
			return t, nil
		}
	}
	return 0, fmt.Errorf("want none, public or any, not %q", name)
}

// Place says how errors name where a URL came from: the member of the request with it, and the
// setting that restricts targets.
type Place struct{ Member, Setting string }

// Check returns the host of a URL, or the Fault for one that is not allowed. It does not
// resolve names, which may resolve to another address later: that is checked on connecting.
func (t Targets) Check(address string, at Place) (host string, err error) {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "" || len(address) > 2048:
		return "", core.NewFault(core.CodeInvalid, "%s: want an absolute URL such as https://example.com/hook", at.Member)
	case u.User != nil:
		return "", core.NewFault(core.CodeInvalid, "%s: no user or password allowed", at.Member)
	case u.Scheme != "https" && (u.Scheme != "http" || t != TargetsAny):
		return "", core.NewFault(core.CodeInvalid, "%s: want https, got %q; the setting %s: any allows http", at.Member, u.Scheme, at.Setting)
	}
	if host = strings.ToLower(u.Hostname()); t != TargetsAny && !mayBePublic(host) {
		return "", core.NewFault(core.CodeInvalid, "%s: %.300s is no address of the public Internet; the setting %s: any allows it", at.Member, host, at.Setting)
	}
	return host, nil
}

// mayBePublic reports whether a host is an address of the public Internet, or a name that may resolve to
// one. Whatever ends with a number is an address (WHATWG URL, section 3.5), which some resolvers read
// in more forms than one, such as 127.1 and 0x7f000001.
func mayBePublic(host string) bool {
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return public(ip)
	}
	host = strings.TrimSuffix(host, ".")
	last := host[strings.LastIndexByte(host, '.')+1:]
	isNumber := strings.Trim(last, "0123456789") == "" || strings.HasPrefix(last, "0x")
	return last != "localhost" && !isNumber
}

// ForbiddenAddress is the error of a connection to an address that is not allowed.
type ForbiddenAddress struct{ ip netip.Addr }

// Error implements error.
func (e *ForbiddenAddress) Error() string {
	return "the target has the address " + e.ip.String() + ", which is not of the public Internet"
}

// Transport returns the transport of deliveries. It checks each address when it connects,
// since a name may resolve to another one by then, and uses no proxy.
func (t Targets) Transport() http.RoundTripper {
	d := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if ip := at.Addr(); t != TargetsAny && !public(ip) {
			return &ForbiddenAddress{ip}
		}
		return nil
	}}
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: deliveryTimeout,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
}

// unicast6 is what IANA has assigned of IPv6 as global unicast. Outside are also the forms that embed an
// address of IPv4, such as ::ffff:0:127.0.0.1 (RFC 2765) and 64:ff9b::127.0.0.1 (RFC 6052).
var unicast6 = netip.MustParsePrefix("2000::/3")

// notPublic are the networks of IANA's special-purpose address registries that netip does
// not detect, and those that embed an address of the other family.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"), netip.MustParsePrefix("3fff::/20"),
}

// public reports whether an address is in the public Internet.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && (ip.Is4() || unicast6.Contains(ip)) && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}
