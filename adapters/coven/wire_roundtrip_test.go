package coven_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// drawNonEmpty draws text of at least one character.
func drawNonEmpty(t *rapid.T, label string) string { return rapid.StringN(1, -1, -1).Draw(t, label) }

// drawOptional draws a text or nil.
func drawOptional(t *rapid.T, label string) *string {
	if !rapid.Bool().Draw(t, "has "+label) {
		return nil
	}
	return proto.String(drawNonEmpty(t, label))
}

// sent encodes and decodes a message.
func sent[M proto.Message](t *rapid.T, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatalf("encode: got error %v, want none", err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatalf("decode: got error %v, want none", err)
	}
	return out.(M)
}

func sameMessage(t *rapid.T, want, got proto.Message) {
	t.Helper()
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Fatalf("back (-want +got):\n%s", diff)
	}
}

func TestRequestsOfTextAndFilesSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &pb.SendMessage{
			RequestId: drawNonEmpty(t, "request"), ThreadId: drawNonEmpty(t, "thread"), Sender: drawText(t, "sender"), Content: drawText(t, "content"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "attachments") {
			m.Attachments = append(m.Attachments, &pb.FileAttachment{
				Filename: drawText(t, "name"), MimeType: drawText(t, "type"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
			})
		}
		got := sent(t, m)
		r := wire.RequestOf(got)
		if r.Intent != core.IntentAsk || string(r.Thread) != m.ThreadId || len(r.Attachments) != len(m.Attachments) {
			t.Fatalf("request: got %+v, want what %v says", r, m)
		}
		back, folded := wire.PromptOf(core.TaskID(got.RequestId), core.Principal{ID: got.Sender}, r)
		if folded {
			t.Fatal("folded: got true, want false")
		}
		sameMessage(t, m, sent(t, back.GetSendMessage()))
	})
}

func TestInjectionsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &pb.InjectContext{
			InjectionId: drawText(t, "id"), Content: drawText(t, "content"), Source: drawOptional(t, "source"),
			Priority: pb.InjectionPriority(rapid.Int32Range(1, 3).Draw(t, "priority")),
		}
		in := wire.InjectionOf(sent(t, m))
		if in.Priority < core.InjectionImmediate || in.Priority > core.InjectionDeferred {
			t.Fatalf("priority: got %v, want that of %v", in.Priority, m.Priority)
		}
		sameMessage(t, m, wire.InjectOf(in))
	})
}

func TestAnInjectionWithoutAPriorityIsNormal(t *testing.T) {
	if got := wire.InjectOf(core.Injected{}).Priority; got != pb.InjectionPriority_INJECTION_PRIORITY_NORMAL {
		t.Errorf("encoded: got %v, want normal", got)
	}
	for _, p := range []pb.InjectionPriority{0, 7, -1} {
		if got := wire.InjectionOf(&pb.InjectContext{Priority: p}).Priority; got != 0 {
			t.Errorf("priority %d: got %v, want it unset", p, got)
		}
	}
}

func TestInjectionAcksSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &pb.InjectionAck{InjectionId: drawText(t, "id"), Accepted: rapid.Bool().Draw(t, "accepted"), Reason: drawOptional(t, "reason")}
		sameMessage(t, m, wire.AckOf(wire.AnsweredOf(sent(t, m))))
	})
}

func TestDecisionsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := &pb.ToolApprovalResponse{Id: drawText(t, "id"), Approved: rapid.Bool().Draw(t, "approved"), ApproveAll: rapid.Bool().Draw(t, "all")}
		sameMessage(t, m, wire.ApprovalOf(wire.DecisionOf(sent(t, m))))
	})
}

func TestRegistrationsSurviveARoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		flags := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{
			wire.FeatureUsage, wire.FeatureToolStates, wire.FeatureInjection, wire.FeatureCancellation, wire.FeatureRegistrationError, wire.FeatureFaultCodes, "from_the_future",
		}), 0, -1, rapid.ID).Draw(t, "features")
		m := &pb.RegisterAgent{
			AgentId: drawNonEmpty(t, "id"), Name: drawNonEmpty(t, "name"), Capabilities: rapid.SliceOf(rapid.String()).Draw(t, "capabilities"),
			ProtocolFeatures: append([]string(nil), flags...),
		}
		if n := rapid.IntRange(0, 4096).Draw(t, "at once"); n > 0 {
			m.ProtocolFeatures = append(m.ProtocolFeatures, fmt.Sprint("max_concurrent=", n))
		}
		for range rapid.IntRange(0, 2).Draw(t, "domains") {
			m.ProtocolFeatures = append(m.ProtocolFeatures, "domain="+drawNonEmpty(t, "domain"))
		}
		if model := drawText(t, "model"); model != "" {
			m.ProtocolFeatures = append(m.ProtocolFeatures, "model="+model)
		}
		metadata := &pb.AgentMetadata{
			WorkingDirectory: drawText(t, "directory"), Hostname: drawText(t, "host"), Os: drawText(t, "os"), Backend: drawText(t, "backend"),
			Workspaces: rapid.SliceOf(rapid.String()).Draw(t, "workspaces"),
		}
		if rapid.Bool().Draw(t, "has git") {
			metadata.Git = &pb.GitInfo{
				Branch: drawText(t, "branch"), Commit: drawText(t, "commit"), Remote: drawText(t, "remote"), Dirty: rapid.Bool().Draw(t, "dirty"),
				Ahead: rapid.Int32().Draw(t, "ahead"), Behind: rapid.Int32().Draw(t, "behind"),
			}
		}
		if proto.Size(metadata) > 0 {
			m.Metadata = metadata
		}
		card, _, err := wire.CardOf(sent(t, m))
		if err != nil {
			t.Fatalf("CardOf: got error %v, want none", err)
		}
		back, err := wire.RegisterOf(card, flags...)
		if err != nil {
			t.Fatalf("registerOf: got error %v, want none", err)
		}
		sameMessage(t, m, sent(t, back))
		again, _, err := wire.CardOf(back)
		if err != nil {
			t.Fatalf("CardOf what came back: got error %v, want none", err)
		}
		if diff := cmp.Diff(card, again, cmp.Comparer(sameJSON)); diff != "" {
			t.Fatalf("card (-want +got):\n%s", diff)
		}
	})
}
