package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// The protocol features of RegisterAgent. The first four are the specification's
// (section RegisterAgent). The others are additions of this hub.
const (
	FeatureUsage        = "token_usage"
	FeatureToolStates   = "tool_states"
	FeatureInjection    = "injection"
	FeatureCancellation = "cancellation"

	// FeatureRegistrationError asks for RegistrationError with a suggested id instead of
	// status ALREADY_EXISTS.
	FeatureRegistrationError = "registration_error"
	// FeatureFaultCodes declares that the errors of the agent are "<code>: <message>" with
	// a code of the hub.
	FeatureFaultCodes = "fault_codes"
	// FeatureSenderProof asks for the field that [IsProven] reads.
	FeatureSenderProof = "sender_proof"
	// FeatureTrace asks for the fields that [TraceOf] reads.
	FeatureTrace = "trace_context"
	// featureMaxConcurrent=N declares how many requests run at once, featureDomain=D a
	// domain (may be repeated), featureModel=M the model.
	featureMaxConcurrent = "max_concurrent="
	featureDomain        = "domain="
	featureModel         = "model="
)

// The members of a card's metadata beside the fields of AgentMetadata: the protocol
// features as declared, and the short code of the connection.
const (
	metadataFeatures = "protocol_features"
	metadataGit      = "git"
	MetadataInstance = "instance_id"
)

// maxConcurrent is the most that an agent may declare.
const maxConcurrent = 4096

// Extensions are the additional features that change how the hub talks to an agent.
type Extensions struct {
	RegistrationError, FaultCodes, SenderProof, Trace bool
}

// CardOf returns the card of an agent that registers. Its MaxConcurrent is 0 for an agent
// that does not declare how many requests it runs at once. It returns an invalid Fault
// for metadata that is not text.
func CardOf(r *pb.RegisterAgent) (core.Card, Extensions, error) {
	metadata, err := cardMetadata(r)
	if err != nil {
		return core.Card{}, Extensions{}, err
	}
	c := core.Card{
		ID:           core.AgentID(r.GetAgentId()),
		Name:         cmp.Or(r.GetName(), r.GetAgentId()),
		Dialect:      Name,
		Capabilities: slices.Clone(r.GetCapabilities()),
		// The protocol has nothing to declare these: every agent has them.
		Features: core.FeatureStreaming | core.FeatureApprovals | core.FeatureNotices | core.FeatureSessions | core.FeatureFiles,
		Metadata: metadata,
	}
	var ext Extensions
	for _, f := range r.GetProtocolFeatures() {
		readFeature(f, &c, &ext)
	}
	return c, ext, nil
}

// readFeature reads a protocol feature, which may have a value. One that nobody knows is left out.
func readFeature(feature string, c *core.Card, ext *Extensions) {
	_, value, _ := strings.Cut(feature, "=")
	switch strings.TrimSuffix(feature, value) {
	case FeatureUsage:
		c.Features |= core.FeatureUsage
	case FeatureToolStates:
		c.Features |= core.FeatureToolStates
	case FeatureInjection:
		c.Features |= core.FeatureInjection
	case FeatureCancellation:
		c.Features |= core.FeatureCancellation
	case FeatureRegistrationError:
		ext.RegistrationError = true
	case FeatureFaultCodes:
		ext.FaultCodes = true
	case FeatureSenderProof:
		ext.SenderProof = true
	case FeatureTrace:
		ext.Trace = true
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

// cardMetadata returns the metadata of an agent, a member for each field, by the names of
// the protocol.
func cardMetadata(r *pb.RegisterAgent) (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	if r.GetMetadata() != nil {
		b, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(r.GetMetadata())
		if err == nil {
			err = json.Unmarshal(b, &all)
		}
		if err == nil && r.GetMetadata().GetGit() != nil {
			// Zeros count: they mean a clean working copy, level with its remote.
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

// RegisterOf returns the message with which an agent registers a card, with the given
// protocol features and those that the card needs. It returns an invalid Fault for
// metadata that does not fit.
func RegisterOf(c core.Card, features ...string) (*pb.RegisterAgent, error) {
	r := &pb.RegisterAgent{
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
	var err error
	if r.Metadata, err = MetadataOf(c); err != nil {
		return nil, err
	}
	merge(r, keptFields(c).Register)
	return r, nil
}

// MetadataOf returns the members of a card's metadata for which AgentMetadata has a
// field; nil for none. It returns an invalid Fault for one that does not fit.
func MetadataOf(c core.Card) (*pb.AgentMetadata, error) {
	if len(c.Metadata) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(c.Metadata)
	if err != nil {
		return nil, core.NewFault(core.CodeInvalid, "the metadata of the card is not JSON").Because(err)
	}
	m := new(pb.AgentMetadata)
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "the metadata of the card does not fit Coven's AgentMetadata: %v", err)
	}
	u := keptFields(c)
	merge(m, u.Metadata)
	if m.GetGit() != nil {
		merge(m.GetGit(), u.Git)
	}
	if proto.Size(m) == 0 {
		return nil, nil
	}
	return m, nil
}
