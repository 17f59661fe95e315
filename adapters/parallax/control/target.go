package control

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

// Targets restricts the targets of webhooks. Whoever may start an execution makes the hub
// send requests, which reach what the hub reaches: machines behind its firewall, services
// of its own machine, and the metadata of a cloud.
type Targets uint8

// The targets of webhooks.
const (
	// TargetsNone refuses every webhook.
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

// check returns the host of a URL, or the Fault for one that is not allowed. It does not
// resolve names, which may resolve to another address later: see transport.
func (t Targets) check(address string) (host string, err error) {
	u, err := url.Parse(address)
	switch {
	case t == TargetsNone:
		return "", core.NewFault(core.CodeNotAuthorized, "webhook: this hub delivers none: the setting parallax.webhook_targets allows them")
	case err != nil || u.Host == "" || len(address) > 2048:
		return "", core.NewFault(core.CodeInvalid, "webhook.url: want an absolute URL such as https://example.com/hook")
	case u.User != nil:
		return "", core.NewFault(core.CodeInvalid, "webhook.url: no user or password allowed: deliveries are signed with webhook.secret")
	case u.Scheme != "https" && (u.Scheme != "http" || t != TargetsAny):
		return "", core.NewFault(core.CodeInvalid, "webhook.url: want https, got %q; the setting parallax.webhook_targets: any allows http", u.Scheme)
	}
	if ip, err := netip.ParseAddr(strings.Trim(u.Hostname(), "[]")); err == nil && t != TargetsAny && !public(ip) {
		return "", core.NewFault(core.CodeInvalid, "webhook.url: %s is no address of the public Internet; the setting parallax.webhook_targets: any allows it", ip)
	}
	return strings.ToLower(u.Hostname()), nil
}

// forbiddenAddress is the error of a connection to an address that is not allowed.
type forbiddenAddress struct{ ip netip.Addr }

func (e *forbiddenAddress) Error() string {
	return "the target has the address " + e.ip.String() + ", which is not of the public Internet"
}

// transport returns the transport of deliveries. It checks each address when it connects,
// since a name may resolve to another one by then, and uses no proxy.
func (t Targets) transport() http.RoundTripper {
	d := &net.Dialer{Timeout: 10 * time.Second, Control: func(_, address string, _ syscall.RawConn) error {
		at, err := netip.ParseAddrPort(address)
		if err != nil {
			return err
		}
		if ip := at.Addr(); t != TargetsAny && !public(ip) {
			return &forbiddenAddress{ip}
		}
		return nil
	}}
	return &http.Transport{
		DialContext: d.DialContext, TLSHandshakeTimeout: 10 * time.Second, ResponseHeaderTimeout: deliveryTimeout,
		MaxResponseHeaderBytes: 64 << 10, DisableKeepAlives: true, ForceAttemptHTTP2: true,
	}
}

// notPublic are the networks of IANA's special-purpose address registries that netip does
// not detect, and those that embed an address of the other family.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("192.88.99.0/24"), netip.MustParsePrefix("198.18.0.0/15"),
	netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"),
	netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("64:ff9b:1::/48"), netip.MustParsePrefix("100::/64"),
	netip.MustParsePrefix("2001::/23"), netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("2002::/16"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("3fff::/20"), netip.MustParsePrefix("5f00::/16"), netip.MustParsePrefix("fec0::/10"),
}

// public reports whether an address is in the public Internet.
func public(ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	return ip.IsGlobalUnicast() && !ip.IsPrivate() && !slices.ContainsFunc(notPublic, func(p netip.Prefix) bool { return p.Contains(ip) })
}
