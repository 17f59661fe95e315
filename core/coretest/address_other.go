//go:build !linux

package coretest

import (
	"net"
	"testing"
)

// Address returns an address of this machine at which nobody listens.
func Address(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
