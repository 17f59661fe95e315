package registry

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/parallax/registry"
)

// agentOf returns the registration of an agent of any dialect. Its endpoint is no address,
// since the agent is asked through the hub.
func agentOf(a hub.AgentStatus) *pb.AgentRegistration {
	m := &pb.AgentRegistration_Metadata{Labels: map[string]string{}}
	for name, raw := range a.Metadata {
		text := string(raw)
		_ = json.Unmarshal(raw, &text) // any other value stays JSON
		switch name {
		case "version":
			m.Version = text
		case "region":
			m.Region = text
		case "name", "endpoint":
		default:
			m.Labels[name] = text
		}
	}
	return &pb.AgentRegistration{
		Id: string(a.ID), Name: a.Name, Endpoint: a.Dialect + "://" + string(a.ID), Capabilities: a.Capabilities, Metadata: m,
		RegisteredAt: timestamppb.New(a.Since),
	}
}

// labelled reports whether an agent has all the labels.
func labelled(a *pb.AgentRegistration, labels map[string]string) bool {
	for name, value := range labels {
		if have, there := a.GetMetadata().GetLabels()[name]; !there || have != value {
			return false
		}
	}
	return true
}

// GetAgent implements [pb.RegistryServer].
func (r *Registry) GetAgent(ctx context.Context, in *pb.GetAgentRequest) (*pb.AgentRegistration, error) {
	a, here := r.hub.Agent(r.opts.Principal(ctx), core.AgentID(in.GetAgentId()))
	if !here {
		return nil, status.Errorf(codes.NotFound, "no agent %q is here", in.GetAgentId())
	}
	return agentOf(a), nil
}

// maxListed is the maximum number of agents in one response, and maxListedBytes of their size: a
// client takes messages of 4 MiB.
const (
	maxListed      = 1000
	maxListedBytes = 2 << 20
)

// ListAgents implements [pb.RegistryServer]. The continuation token is the id of the last
// agent in a response.
func (r *Registry) ListAgents(ctx context.Context, in *pb.ListAgentsRequest) (*pb.ListAgentsResponse, error) {
	out := &pb.ListAgentsResponse{}
	limit, bytes, full := maxListed, 0, false
	if n := int(in.GetLimit()); n > 0 {
		limit = min(n, limit)
	}
	for _, status := range r.hub.Agents(r.opts.Principal(ctx)) { // by id
		if !able(status, in.GetCapabilities()) {
			continue
		}
		if elsewhere := full || string(status.ID) <= in.GetContinuationToken(); elsewhere && len(in.GetLabels()) == 0 {
			out.TotalCount++ // without a copy of its card
			continue
		}
		a := agentOf(status)
		if !labelled(a, in.GetLabels()) {
			continue
		}
		out.TotalCount++
		switch {
		case a.GetId() <= in.GetContinuationToken():
		case full:
		default:
			size := proto.Size(a)
			if n := len(out.GetAgents()); n == limit || n > 0 && bytes+size > maxListedBytes {
				full, out.NextContinuationToken = true, out.GetAgents()[n-1].GetId()
				continue
			}
			bytes += size
			out.Agents = append(out.Agents, a)
		}
	}
	return out, nil
}

// watchInterval is the time between two polls of Watch, as in Parallax.
const watchInterval = 2 * time.Second

// Watch implements [pb.RegistryServer]. It ends with the hub.
func (r *Registry) Watch(in *pb.WatchRequest, out grpc.ServerStreamingServer[pb.WatchEvent]) error {
	var known []hub.AgentStatus // by id; their cards are those of the hub
	watcher := r.hub.Connect(hub.Identity{Principal: r.opts.Principal(out.Context())})
	defer watcher.Close(nil)
	if full := watcher.Rejected(); full != nil {
		return status.Error(codes.ResourceExhausted, full.Message)
	}
	for first := true; ; first = false {
		now := slices.DeleteFunc(r.hub.Agents(watcher.Identity().Principal), func(a hub.AgentStatus) bool { return !able(a, in.GetCapabilities()) })
		if !first || in.GetIncludeInitial() {
			for e := range changes(known, now) {
				if err := out.Send(e); err != nil {
					return err
				}
			}
		}
		known = now
		if err := pause(out.Context(), watcher); err != nil {
			return err
		}
	}
}

// pause waits for the next poll. The error is the status that ends the stream.
func pause(ctx context.Context, watcher *hub.Session) error {
	until, cancel := context.WithTimeout(ctx, watchInterval)
	defer cancel()
	for {
		_, err := watcher.Next(until)
		switch {
		case ctx.Err() != nil:
			return status.FromContextError(ctx.Err()).Err()
		case until.Err() != nil:
			return nil
		case err != nil:
			return status.Error(codes.Unavailable, core.AsFault(err).Message)
		}
	}
}

// changes yields the events between two polls, which are ordered by id. Each is made when it is
// sent, since it has a copy of the card.
func changes(before, now []hub.AgentStatus) iter.Seq[*pb.WatchEvent] {
	at := timestamppb.Now()
	find := func(all []hub.AgentStatus, id core.AgentID) (hub.AgentStatus, bool) {
		i, found := slices.BinarySearchFunc(all, id, func(a hub.AgentStatus, id core.AgentID) int { return cmp.Compare(a.ID, id) })
		if !found {
			return hub.AgentStatus{}, false
		}
		return all[i], true
	}
	return func(yield func(*pb.WatchEvent) bool) {
		for _, a := range before {
			if _, here := find(now, a.ID); !here && !yield(&pb.WatchEvent{Type: pb.WatchEvent_DELETED, Agent: agentOf(a), Timestamp: at}) {
				return
			}
		}
		for _, a := range now {
			kind := pb.WatchEvent_ADDED
			if was, known := find(before, a.ID); known {
				if looksSame(was, a) {
					continue
				}
				kind = pb.WatchEvent_MODIFIED
			}
			if !yield(&pb.WatchEvent{Type: kind, Agent: agentOf(a), Timestamp: at}) {
				return
			}
		}
	}
}

// looksSame reports whether agentOf is the same for both.
func looksSame(a, b hub.AgentStatus) bool {
	return a.Name == b.Name && a.Dialect == b.Dialect && a.Since.Equal(b.Since) && slices.Equal(a.Capabilities, b.Capabilities) &&
		maps.EqualFunc(a.Metadata, b.Metadata, func(x, y json.RawMessage) bool { return bytes.Equal(x, y) })
}

// able reports whether an agent has all the capabilities.
func able(a hub.AgentStatus, capabilities []string) bool {
	return !slices.ContainsFunc(capabilities, func(c string) bool { return !slices.Contains(a.Capabilities, c) })
}
