package coven_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func seed(f *testing.F, m proto.Message) {
	f.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

func FuzzAgentMessage(f *testing.F) {
	seed(f, &pb.AgentMessage{Payload: &pb.AgentMessage_Register{Register: &pb.RegisterAgent{
		AgentId: "a", Capabilities: []string{"chat"}, ProtocolFeatures: []string{"token_usage", "max_concurrent=8", "domain=x.y", "=", "max_concurrent=-1"},
		Metadata: &pb.AgentMetadata{Os: "linux", Git: &pb.GitInfo{Branch: "main", Ahead: 1}, Workspaces: []string{"dev"}},
	}}})
	seed(f, &pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{RequestId: "r", Event: &pb.MessageResponse_Text{Text: "x"}}}})
	seed(f, &pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{Event: &pb.MessageResponse_Done{}}}})
	foreign, err := wire.ResponseOf("r", core.ForeignFrame{Dialect: "editor", Name: "plan"}, &core.Foreign{Dialect: "editor", JSON: []byte(`{"a":1}`)})
	if err != nil {
		f.Fatal(err)
	}
	seed(f, &pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: foreign}})
	seed(f, &pb.AgentMessage{Payload: &pb.AgentMessage_Response{}})
	seed(f, &pb.AgentMessage{})
	f.Add(protowire.AppendTag(nil, 77, protowire.EndGroupType))
	f.Fuzz(func(t *testing.T, raw []byte) {
		m := new(pb.AgentMessage)
		if proto.Unmarshal(raw, m) != nil {
			return // the transport refuses it
		}
		if r := m.GetRegister(); r != nil {
			card, _, err := wire.CardOf(r)
			if err != nil {
				t.Fatalf("CardOf of decoded bytes: got error %v, want none", err)
			}
			if card.MaxConcurrent < 0 || card.MaxConcurrent > 4096 {
				t.Errorf("MaxConcurrent: got %d, want 0 to %d", card.MaxConcurrent, 4096)
			}
			if _, err := wire.RegisterOf(card); err != nil {
				t.Errorf("registerOf its card: got error %v, want none", err)
			}
		}
		r := m.GetResponse()
		if r == nil {
			return
		}
		body, foreign, err := wire.EventOf(r)
		if err != nil {
			if body != nil || foreign != nil {
				t.Errorf("got error %v with %#v, want the error alone", err, body)
			}
			return
		}
		back, err := wire.ResponseOf(r.GetRequestId(), body, foreign)
		if err != nil {
			t.Fatalf("responseOf %#v: got error %v, want none", body, err)
		}
		again, _, err := wire.EventOf(back)
		if err != nil {
			t.Fatalf("EventOf what came back: got error %v, want none", err)
		}
		if again.Kind() != body.Kind() {
			t.Errorf("kind: got %s, want %s", again.Kind(), body.Kind())
		}
	})
}

func FuzzRequest(f *testing.F) {
	f.Add("hello", []byte(`{"a":1}`), "thread", "sender", "```")
	f.Add("", []byte("``````"), "\xff", "", "\xc3\x28")
	f.Fuzz(func(t *testing.T, content string, data []byte, thread, sender, turn string) {
		r := core.Request{
			Content: content, Data: data, Thread: core.ThreadID(thread),
			History:     []core.Turn{{Role: core.RoleUser, Text: turn}},
			Attachments: []core.File{{Name: turn, Data: data}},
		}
		m, folded := wire.PromptOf("task", core.Principal{ID: sender}, r)
		if _, err := proto.Marshal(m); err != nil {
			t.Fatalf("encode: got error %v, want none", err)
		}
		if !folded {
			t.Error("folded: got false for a request with history, want true")
		}
	})
}
