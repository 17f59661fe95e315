package coven_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// newer adds a field that this hub does not know.
func newer[M proto.Message](m M, text string) M {
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), text))
	return m
}

func TestUnknownFieldsOfARegistrationSurviveARoundTrip(t *testing.T) {
	git := newer(&pb.GitInfo{Branch: "main"}, "in git")
	metadata := newer(&pb.AgentMetadata{Os: "linux", Git: git}, "in metadata")
	card, _, err := wire.CardOf(newer(&pb.RegisterAgent{AgentId: "a", Metadata: metadata}, "in register"))
	if err != nil {
		t.Fatal(err)
	}
	kept, err := wire.MetadataOf(card)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(metadata, kept, protocmp.Transform()); d != "" {
		t.Errorf("metadata (-want +got):\n%s", d)
	}
	again, err := wire.RegisterOf(card)
	if err != nil {
		t.Fatal(err)
	}
	want := newer(&pb.RegisterAgent{AgentId: "a", Name: "a", Metadata: metadata}, "in register")
	if d := cmp.Diff(want, again, protocmp.Transform()); d != "" {
		t.Errorf("an agent of the same card (-want +got):\n%s", d)
	}
}

func TestInvalidKeptFieldsAreIgnored(t *testing.T) {
	for _, kept := range []string{`7`, `{"metadata":"!"}`, `{"metadata":"/w=="}`, `{"git":"/w=="}`} {
		card, _, err := wire.CardOf(&pb.RegisterAgent{AgentId: "a", Metadata: &pb.AgentMetadata{Os: "linux"}})
		if err != nil {
			t.Fatal(err)
		}
		card.Metadata["unknown_fields"] = []byte(kept)
		if got, err := wire.MetadataOf(card); err != nil || got.GetOs() != "linux" {
			t.Errorf("%s: got %v and %v, want the other metadata", kept, got, err)
		}
	}
}

func TestIgnoredFieldsAreThoseTheHubWouldActOn(t *testing.T) {
	for name, c := range map[string]struct {
		m    *pb.AgentMessage
		want bool
	}{
		"next to a heartbeat": {newer(&pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{}}, "x"), true},
		"in a heartbeat":      {&pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{Heartbeat: newer(&pb.Heartbeat{}, "x")}}, true},
		"in an ack":           {&pb.AgentMessage{Payload: &pb.AgentMessage_InjectionAck{InjectionAck: newer(&pb.InjectionAck{}, "x")}}, true},
		"in a call":           {&pb.AgentMessage{Payload: &pb.AgentMessage_ExecutePackTool{ExecutePackTool: newer(&pb.ExecutePackTool{}, "x")}}, true},
		"in a response":       {&pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: newer(&pb.MessageResponse{}, "x")}}, false},
		"none":                {&pb.AgentMessage{Payload: &pb.AgentMessage_Heartbeat{Heartbeat: &pb.Heartbeat{TimestampMs: 1}}}, false},
		"a newer message":     {newer(&pb.AgentMessage{}, "x"), false},
	} {
		if got := wire.IgnoresFields(c.m); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
