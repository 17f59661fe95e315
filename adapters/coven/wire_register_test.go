package coven_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

const always = core.FeatureStreaming | core.FeatureApprovals | core.FeatureNotices | core.FeatureSessions | core.FeatureFiles

func TestTheRegistrationOfTheSpecificationBecomesItsCard(t *testing.T) {
	m := new(pb.AgentMessage)
	if err := protojson.Unmarshal([]byte(`{
	  "register": {
	    "agent_id": "550e8400-e29b-41d4-a716-446655440000",
	    "name": "mux-agent-1",
	    "capabilities": ["chat", "base", "notes"],
	    "metadata": {
	      "working_directory": "/home/user/project",
	      "hostname": "dev-machine",
	      "os": "linux",
	      "workspaces": ["dev", "personal"],
	      "backend": "mux"
	    },
	    "protocol_features": ["token_usage", "tool_states", "injection", "cancellation"]
	  }
	}`), m); err != nil {
		t.Fatal(err)
	}
	got, ext, err := wire.CardOf(m.GetRegister())
	if err != nil {
		t.Fatal(err)
	}
	want := core.Card{
		ID: "550e8400-e29b-41d4-a716-446655440000", Name: "mux-agent-1", Dialect: "coven",
		Capabilities: []string{"chat", "base", "notes"},
		Features:     always | core.FeatureUsage | core.FeatureToolStates | core.FeatureInjection | core.FeatureCancellation,
		Metadata: map[string]json.RawMessage{
			"working_directory": json.RawMessage(`"/home/user/project"`),
			"hostname":          json.RawMessage(`"dev-machine"`),
			"os":                json.RawMessage(`"linux"`),
			"workspaces":        json.RawMessage(`["dev","personal"]`),
			"backend":           json.RawMessage(`"mux"`),
			"protocol_features": json.RawMessage(`["token_usage","tool_states","injection","cancellation"]`),
		},
	}
	if diff := cmp.Diff(want, got, cmp.Comparer(sameJSON)); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
	if ext != (wire.Extensions{}) {
		t.Errorf("extensions: got %+v, want none", ext)
	}
}

// sameJSON compares values: protojson varies its spaces on purpose.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && cmp.Equal(x, y)
}

func TestARegistrationWithoutDetailsBecomesACard(t *testing.T) {
	got, _, err := wire.CardOf(&pb.RegisterAgent{AgentId: "a"})
	if err != nil {
		t.Fatal(err)
	}
	want := core.Card{ID: "a", Name: "a", Dialect: "coven", Features: always, Metadata: map[string]json.RawMessage{}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
}

func TestUnknownProtocolFeaturesAreIgnored(t *testing.T) {
	got, ext, err := wire.CardOf(&pb.RegisterAgent{AgentId: "a", ProtocolFeatures: []string{
		"pack_tools", "", "=", "max_concurrent", "max_concurrent=", "max_concurrent=x", "max_concurrent=0", "max_concurrent=-3", "domain=", "token_usage=", "Token_Usage",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got.Features != always || got.MaxConcurrent != 0 || got.Domains != nil || ext != (wire.Extensions{}) {
		t.Errorf("got %+v, %+v; want the card unchanged by them", got, ext)
	}
}

func TestACardSurvivesARoundTrip(t *testing.T) {
	card := core.Card{
		ID: "a", Name: "A", Dialect: "coven", Capabilities: []string{"chat"}, Domains: []string{"x.y", "z"}, Model: "m=1", MaxConcurrent: 8,
		Features: always | core.FeatureUsage,
		Metadata: map[string]json.RawMessage{"os": json.RawMessage(`"linux"`), "git": json.RawMessage(`{"branch":"main","commit":"","dirty":false,"remote":"","ahead":0,"behind":2}`)},
	}
	r, err := wire.RegisterOf(card, wire.FeatureUsage, wire.FeatureFaultCodes, wire.FeatureRegistrationError)
	if err != nil {
		t.Fatal(err)
	}
	got, ext, err := wire.CardOf(r)
	if err != nil {
		t.Fatal(err)
	}
	delete(got.Metadata, "protocol_features")
	if diff := cmp.Diff(card, got, cmp.Comparer(sameJSON)); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
	if want := (wire.Extensions{RegistrationError: true, FaultCodes: true}); ext != want {
		t.Errorf("extensions: got %+v, want %+v", ext, want)
	}
}

func TestMetadataWithoutAFieldIsLeftOut(t *testing.T) {
	r, err := wire.RegisterOf(core.Card{ID: "a", Metadata: map[string]json.RawMessage{"os": json.RawMessage(`"linux"`), "colour": json.RawMessage(`"red"`)}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&pb.AgentMetadata{Os: "linux"}, r.GetMetadata(), protocmp.Transform()); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
}
