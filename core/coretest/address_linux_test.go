package coretest_test

import (
	"net"
	"testing"

	"github.com/dragoman-hub/dragoman/core/coretest"
)

func TestOnlyThoseWhoAreToldAnAddressListenThere(t *testing.T) {
	own := map[string]bool{}
	for range 100 {
		own[coretest.Address(t)] = true
	}
	if len(own) != 100 {
		t.Errorf("got %d addresses, want 100", len(own))
	}
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if at := l.Addr().String(); own[at] {
			t.Errorf("somebody was given %s, want it kept", at)
		}
	}
	for at := range own {
		for range 2 {
			l, err := net.Listen("tcp", at)
			if err != nil {
				t.Fatalf("somebody who was told the address: got %v, want that it listens there", err)
			}
			l.Close()
		}
	}
}
