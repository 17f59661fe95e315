package coven

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/core/hub"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// newer adds a field that this hub does not know.
func newer[M proto.Message](m M, text string) M {
	m.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 900, protowire.BytesType), text))
	return m
}

func TestFieldsOfARegistrationThatNobodyKnowsArePassedOnAsTheyCame(t *testing.T) {
	git := newer(&wire.GitInfo{Branch: "main"}, "in git")
	metadata := newer(&wire.AgentMetadata{Os: "linux", Git: git}, "in metadata")
	card, _, err := cardOf(newer(&wire.RegisterAgent{AgentId: "a", Metadata: metadata}, "in register"))
	if err != nil {
		t.Fatal(err)
	}
	told := agentInfo(hub.AgentStatus{Card: card}).GetMetadata()
	if d := cmp.Diff(metadata, told, protocmp.Transform()); d != "" {
		t.Errorf("what clients are told (-want +got):\n%s", d)
	}
	again, err := RegisterOf(card)
	if err != nil {
		t.Fatal(err)
	}
	want := newer(&wire.RegisterAgent{AgentId: "a", Name: "a", Metadata: metadata}, "in register")
	if d := cmp.Diff(want, again, protocmp.Transform()); d != "" {
		t.Errorf("an agent of the same card (-want +got):\n%s", d)
	}
}

func TestKeptFieldsThatAreNoneDoNoHarm(t *testing.T) {
	for _, kept := range []string{`7`, `{"metadata":"!"}`, `{"metadata":"/w=="}`, `{"git":"/w=="}`} {
		card, _, err := cardOf(&wire.RegisterAgent{AgentId: "a", Metadata: &wire.AgentMetadata{Os: "linux"}})
		if err != nil {
			t.Fatal(err)
		}
		card.Metadata[metadataUnknown] = []byte(kept)
		if got := agentInfo(hub.AgentStatus{Card: card}).GetMetadata(); got.GetOs() != "linux" {
			t.Errorf("%s: got %v, want what else was told", kept, got)
		}
	}
}

func TestFieldsThatTheHubWouldHaveToActOnAreCounted(t *testing.T) {
	for name, c := range map[string]struct {
		m    *wire.AgentMessage
		want bool
	}{
		"beside a heartbeat": {newer(&wire.AgentMessage{Payload: &wire.AgentMessage_Heartbeat{}}, "x"), true},
		"in a heartbeat":     {&wire.AgentMessage{Payload: &wire.AgentMessage_Heartbeat{Heartbeat: newer(&wire.Heartbeat{}, "x")}}, true},
		"in an ack":          {&wire.AgentMessage{Payload: &wire.AgentMessage_InjectionAck{InjectionAck: newer(&wire.InjectionAck{}, "x")}}, true},
		"in a call":          {&wire.AgentMessage{Payload: &wire.AgentMessage_ExecutePackTool{ExecutePackTool: newer(&wire.ExecutePackTool{}, "x")}}, true},
		"in a response":      {&wire.AgentMessage{Payload: &wire.AgentMessage_Response{Response: newer(&wire.MessageResponse{}, "x")}}, false},
		"none":               {&wire.AgentMessage{Payload: &wire.AgentMessage_Heartbeat{Heartbeat: &wire.Heartbeat{TimestampMs: 1}}}, false},
		"a newer message":    {newer(&wire.AgentMessage{}, "x"), false},
	} {
		if got := ignoresFields(c.m); got != c.want {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
