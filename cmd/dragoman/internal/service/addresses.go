package service

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// address is a listen address and its setting.
type address struct{ key, addr string }

// addresses are the listen addresses that are set.
func addresses(c config.Config) []address {
	var all []address
	for _, d := range []address{{"grpc_addr", c.GRPCAddr}, {"http_addr", c.HTTPAddr}, {"pi_addr", c.PiAddr}} {
		if d.addr != "" {
			all = append(all, d)
		}
	}
	return all
}

// Keep gives listeners whose port was free to choose the ports that they are bound to: clients find
// the next life of the hub there.
func (a Addresses) Keep(c *config.Config) {
	for addr, bound := range map[*string]string{&c.GRPCAddr: a.GRPC, &c.HTTPAddr: a.HTTP, &c.PiAddr: a.Pi} {
		host, port, err := net.SplitHostPort(*addr)
		if _, chosen, known := net.SplitHostPort(bound); err == nil && port == "0" && known == nil {
			*addr = net.JoinHostPort(host, chosen)
		}
	}
}

// reached returns the address of a bound listener for a peer at from that is connected to our
// address to; "" if the peer cannot reach it or there is no listener.
func reached(bound string, to, from net.Addr) string {
	host, port, err := net.SplitHostPort(bound)
	if err != nil {
		return "" // no listener
	}
	ours, _ := to.(*net.TCPAddr)
	theirs, _ := from.(*net.TCPAddr)
	near := theirs != nil && (theirs.IP.IsLoopback() || ours != nil && theirs.IP.Equal(ours.IP))
	switch ip := net.ParseIP(host); {
	case ip.IsUnspecified() && near && ip.To4() != nil:
		host = "127.0.0.1"
	case ip.IsUnspecified() && ours != nil && (ip.To4() == nil || ours.IP.To4() != nil):
		host = (&net.IPAddr{IP: ours.IP, Zone: ours.Zone}).String()
	case ip.IsUnspecified(), ip.IsLoopback() && !near:
		return ""
	}
	return net.JoinHostPort(host, port)
}

// reachedBy returns the addresses at which the sender of a request reaches the listeners.
func (a Addresses) reachedBy(r *http.Request) rest.Addresses {
	to, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	var from net.Addr
	if at, err := netip.ParseAddrPort(r.RemoteAddr); err == nil {
		from = net.TCPAddrFromAddrPort(at)
	}
	return rest.Addresses{GRPC: reached(a.GRPC, to, from), HTTP: reached(a.HTTP, to, from), Pi: reached(a.Pi, to, from)}
}

// forOthers returns the address at which clients reach the hub, as the other hubs of its cluster tell
// it; "" if those clients may not reach it, or at an address that the hub does not know.
func (a Addresses) forOthers(c config.Config) string {
	host, port, err := net.SplitHostPort(a.HTTP)
	if err != nil {
		return "" // no listener
	}
	among, _, _ := net.SplitHostPort(cmp.Or(c.Cluster.Advertise, c.Cluster.Listen)) // "" if the hubs meet elsewhere
	ip, known := net.ParseIP(host), net.ParseIP(among)
	switch {
	case ip.IsUnspecified() && (among == "" || known.IsUnspecified()), ip.IsLoopback() && !known.IsLoopback():
		return ""
	case ip.IsUnspecified():
		host = among
	}
	scheme := "http://"
	if c.TLS.Cert != "" {
		scheme = "https://"
	}
	return scheme + net.JoinHostPort(host, port)
}

// bindAll binds every listen address, by its setting. If some cannot be bound, its error
// names all of them and none stays bound.
func bindAll(ctx context.Context, c config.Config) (map[string]net.Listener, error) {
	listeners := map[string]net.Listener{}
	var refused []error
	var places []string
	for _, d := range addresses(c) {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", d.addr)
		if err != nil {
			refused, places = append(refused, err), append(places, c.At(d.key).Where())
			continue
		}
		listeners[d.key] = l
	}
	if len(refused) == 0 {
		return listeners, nil
	}
	for _, l := range listeners {
		l.Close()
	}
	return nil, fmt.Errorf("cannot listen: %w; choose other addresses with %s (port 0 picks a free one), or use what runs there, which may be a hub", errors.Join(refused...), strings.Join(places, ", "))
}

// checkExposure refuses malformed addresses, and a hub without authentication that the
// network could reach by mistake.
func checkExposure(c config.Config) error {
	var wrong []error
	for _, d := range addresses(c) {
		if why := malformed(d.addr); why != "" {
			wrong = append(wrong, fmt.Errorf("%s %s: %s; write it as host:port, such as 127.0.0.1:8080", c.At(d.key), d.addr, why))
			continue
		}
		host, _, _ := net.SplitHostPort(d.addr) // it has been checked
		if ip := net.ParseIP(host); !c.Insecure && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
			wrong = append(wrong, exposed(c, d))
		}
	}
	return errors.Join(wrong...)
}

// exposed refuses a listener that others can reach without TLS or authentication, and says what
// would mend it; nil with both.
func exposed(c config.Config, at address) error {
	var why, lines []string
	if !c.Authenticates() {
		why = append(why, "nobody has to authenticate")
	}
	if c.TLS.Cert == "" {
		why = append(why, "nothing is encrypted")
		lines = append(lines, "tls.cert: /path/to/hub.crt", "tls.key: /path/to/hub.key")
	}
	if !c.Authenticates() {
		lines = append(lines, "auth.tokens: /path/to/tokens.yaml   # made by: dragoman token new --principal NAME --file /path/to/tokens.yaml")
	}
	if len(why) == 0 {
		return nil
	}
	return fmt.Errorf("%s %s is open to the network and %s: use 127.0.0.1, add --insecure if that is what you want, or write into the settings\n    %s",
		c.At(at.key), at.addr, strings.Join(why, " and "), strings.Join(lines, "\n    "))
}

// malformed returns why an address is malformed, "" if it is not.
func malformed(addr string) string {
	host, port, err := net.SplitHostPort(addr)
	var why *net.AddrError
	switch {
	case errors.As(err, &why):
		return why.Err
	case err != nil:
		return err.Error()
	}
	if _, err := net.LookupPort("tcp", port); err != nil || port == "" {
		return fmt.Sprintf("%q is no port (0 to 65535)", port)
	}
	numeric := strings.ContainsAny(host, ":") || host != "" && strings.Trim(host, "0123456789.") == ""
	if bare, _, _ := strings.Cut(host, "%"); numeric && net.ParseIP(bare) == nil {
		return fmt.Sprintf("%q is no IP address", host)
	}
	return ""
}

// CheckListeners refuses a hub without a listener, and one that anybody on the network could use without TLS and authentication.
func CheckListeners(c config.Config) error {
	if c.GRPCAddr == "" && c.HTTPAddr == "" && c.PiAddr == "" && c.PiSocket == "" && !c.Stdio {
		return errors.New("all listen addresses are empty, so nothing could reach the hub: set one of --grpc-addr, --http-addr, --pi-addr, --pi-socket or --stdio")
	}
	return checkExposure(c)
}
