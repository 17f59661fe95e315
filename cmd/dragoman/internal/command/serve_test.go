package command

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func TestTheHubSaysWhereItIsReadyAndNothingOfWhatIsLeftOut(t *testing.T) {
	for _, tt := range []struct {
		at   service.Addresses
		dir  string
		want string
	}{
		{service.Addresses{GRPC: "a:1", HTTP: "a:2", Pi: "a:3"}, "data", "[grpc a:1 http a:2 pi a:3 data data version " + service.Version + "]"},
		{service.Addresses{PiSocket: "/run/pi"}, "", "[pi_socket /run/pi version " + service.Version + "]"},
	} {
		if got := fmt.Sprint(readyLine(tt.at, config.Config{DataDir: tt.dir})); got != tt.want {
			t.Errorf("got %s, want %s", got, tt.want)
		}
	}
}
