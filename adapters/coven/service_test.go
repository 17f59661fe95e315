package coven

import (
	"errors"
	"testing"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestTheServiceEndsAStreamAsAcceptSays(t *testing.T) {
	want := errors.New("the end")
	var s wire.CovenControlServer = NewService(func(wire.CovenControl_AgentStreamServer) error { return want })
	if got := s.AgentStream(nil); !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
