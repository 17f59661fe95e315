package coven_test

import (
	"errors"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestTheServiceEndsAStreamWithTheErrorOfAccept(t *testing.T) {
	want := errors.New("the end")
	var s pb.CovenControlServer = coven.NewService(func(pb.CovenControl_AgentStreamServer) error { return want })
	if got := s.AgentStream(nil); !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTheTranslationCoversEveryKind(t *testing.T) {
	if err := coven.Translation.Check(); err != nil {
		t.Error(err)
	}
}
