package coretest

import (
	"net"
	"net/netip"
	"syscall"
	"testing"
)

// Address reserves a port of loopback until the test ends, and returns its address. Whoever is told the
// address can listen there. The system gives the port to nobody else, even while nobody listens.
func Address(t testing.TB) string {
	t.Helper()
	// A socket that is bound and does not listen keeps the port. Both it and a listener of Go let
	// another one use the address.
	s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Close(s) })
	loopback := netip.AddrFrom4([4]byte{127, 0, 0, 1})
	if err := syscall.SetsockoptInt(s, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(s, &syscall.SockaddrInet4{Addr: loopback.As4()}); err != nil {
		t.Fatal(err)
	}
	bound, err := syscall.Getsockname(s)
	if err != nil {
		t.Fatal(err)
	}
	port := bound.(*syscall.SockaddrInet4).Port
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(loopback, uint16(port))).String()
}
