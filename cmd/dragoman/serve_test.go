package main

import (
	"fmt"
	"testing"
)

func TestTheHubSaysWhereItIsReadyAndNothingOfWhatIsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		at   Addresses
		dir  string
		want string
	}{
		{Addresses{GRPC: "a:1", HTTP: "a:2", Pi: "a:3"}, "data", "[grpc a:1 http a:2 pi a:3 data data version " + version + "]"},
		{Addresses{PiSocket: "/run/pi"}, "", "[pi_socket /run/pi version " + version + "]"},
	} {
		if got := fmt.Sprint(readyLine(tt.at, Config{DataDir: tt.dir})); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
