package coven

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

// The protocol features of RegisterAgent. The first four are the specification's
// (section RegisterAgent). The others are additive: an agent that does not know
// them does not send them, and a gateway that does not know them ignores them.
const (
	FeatureUsage        = "token_usage"
	FeatureToolStates   = "tool_states"
	FeatureInjection    = "injection"
	FeatureCancellation = "cancellation"

	// FeatureRegistrationError: tell me of a taken id by RegistrationError with a
	// suggestion, not by status ALREADY_EXISTS.
	FeatureRegistrationError = "registration_error"
	// FeatureFaultCodes: the text of my errors is "<code>: <message>" with a code
	// of the hub's.
	FeatureFaultCodes = "fault_codes"
	// featureMaxConcurrent=N: I run N requests at once. featureDomain=D: I answer
	// for the domain D; may be repeated. featureModel=M: what I think with.
	featureMaxConcurrent = "max_concurrent="
	featureDomain        = "domain="
	featureModel         = "model="
)

// What a card keeps in its metadata beside the fields of AgentMetadata: the
// protocol features as they were declared, and the short code of this connection.
const (
	metadataFeatures = "protocol_features"
	metadataGit      = "git"
	metadataInstance = "instance_id"
)

// maxConcurrent bounds what an agent may declare.
const maxConcurrent = 4096

// extensions are the additive features that change how the hub talks to an agent.
type extensions struct {
	registrationError, faultCodes bool
}

// cardOf is the card of an agent that registers. Its MaxConcurrent is 0 for an agent
// that does not say how many requests it runs at once. It returns an invalid Fault
// for metadata that is not text.
func cardOf(r *wire.RegisterAgent) (core.Card, extensions, error) {
	metadata, err := metadataOf(r)
	if err != nil {
		return core.Card{}, extensions{}, err
	}
	c := core.Card{
		ID:           core.AgentID(r.GetAgentId()),
		Name:         cmp.Or(r.GetName(), r.GetAgentId()),
		Dialect:      Name,
		Capabilities: slices.Clone(r.GetCapabilities()),
		// These every agent may use; there is nothing in the protocol to declare them.
		Features: core.FeatureStreaming | core.FeatureApprovals | core.FeatureNotices | core.FeatureSessions | core.FeatureFiles,
		Metadata: metadata,
	}
	var ext extensions
	for _, f := range r.GetProtocolFeatures() {
		_, value, _ := strings.Cut(f, "=")
		switch strings.TrimSuffix(f, value) {
		case FeatureUsage:
			c.Features |= core.FeatureUsage
		case FeatureToolStates:
			c.Features |= core.FeatureToolStates
		case FeatureInjection:
			c.Features |= core.FeatureInjection
		case FeatureCancellation:
			c.Features |= core.FeatureCancellation
		case FeatureRegistrationError:
			ext.registrationError = true
		case FeatureFaultCodes:
			ext.faultCodes = true
		case featureMaxConcurrent:
			if n, err := strconv.Atoi(value); err == nil && n > 0 {
				c.MaxConcurrent = min(n, maxConcurrent)
			}
		case featureDomain:
			if value != "" {
				c.Domains = append(c.Domains, value)
			}
		case featureModel:
			c.Model = value
		}
	}
	return c, ext, nil
}

// metadataOf returns the metadata of an agent, a member for each field, by the names of
// the protocol.
func metadataOf(r *wire.RegisterAgent) (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if r.GetMetadata() != nil {
		b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.GetMetadata())
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err == nil && r.GetMetadata().GetGit() != nil {
			// That a working copy is clean, and level with its remote, is said by zeros.
			all[metadataGit], err = protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(r.GetMetadata().GetGit())
		}
		if err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the metadata is not text").Because(err)
		}
	}
	if fs := r.GetProtocolFeatures(); len(fs) > 0 {
		b, err := json.Marshal(fs)
		if err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the protocol features are not text").Because(err)
		}
		all[metadataFeatures] = b
	}
	if kept := unknownFieldsOf(r); kept != nil {
		all[metadataUnknown] = kept
	}
	return all, nil
}

// RegisterOf returns the message with which an agent registers a card. It holds the
// members of the card's metadata for which AgentMetadata has a field, the features
// given, and the additive features for what else the card says. It returns an invalid
// Fault for metadata that does not fit.
func RegisterOf(c core.Card, features ...string) (*wire.RegisterAgent, error) {
	r := &wire.RegisterAgent{
		AgentId:          ValidUTF8(string(c.ID)),
		Name:             ValidUTF8(c.Name),
		ProtocolFeatures: features,
	}
	for _, capability := range c.Capabilities {
		r.Capabilities = append(r.Capabilities, ValidUTF8(capability))
	}
	if c.MaxConcurrent > 0 {
		r.ProtocolFeatures = append(r.ProtocolFeatures, featureMaxConcurrent+strconv.Itoa(c.MaxConcurrent))
	}
	for _, d := range c.Domains {
		r.ProtocolFeatures = append(r.ProtocolFeatures, featureDomain+ValidUTF8(d))
	}
	if c.Model != "" {
		r.ProtocolFeatures = append(r.ProtocolFeatures, featureModel+ValidUTF8(c.Model))
	}
	if len(c.Metadata) > 0 {
		b, err := json.Marshal(c.Metadata)
		if err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the metadata of the card is not JSON").Because(err)
		}
		m := new(wire.AgentMetadata)
		if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
			return nil, core.NewFault(core.CodeInvalid, "the metadata of the card does not fit Coven's AgentMetadata: %v", err)
		}
		restore(c, r, m)
		if proto.Size(m) > 0 {
			r.Metadata = m
		}
	}
	return r, nil
}
