package service

import (
	"cmp"
	"context"
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// acpState is shared by all ACP connections.
type acpState struct {
	peers *acp.Peers
	http  *acp.HTTP // nil without an HTTP listener
}

func (s *Service) openACP(context.Context) error {
	s.acp.peers = acp.NewPeers(s.hub, acp.PeersOptions{KeepResults: s.config.ACP.KeepResults})
	return nil
}

// mountACP serves peers of ACP over WebSocket and plain HTTP.
func (s *Service) mountACP(l *listeners) {
	if l.http == nil {
		return
	}
	s.acp.http = acp.NewHTTP(s.hub, acp.HTTPOptions{
		Forward: s.forwarder(),
		Session: s.acpOptions(context.Background(), ""), Idle: s.config.ACP.KeepResults,
		Frames: func() *frame.Ring { return s.frames.Connect(acp.Dialect, nil) },
		Identify: func(r *http.Request) (core.Principal, core.AgentID, error) {
			return principalOf(r.Context(), core.Principal{}), "", nil
		},
	})
	l.http.Get("/ws/acp", s.serveACP)
	l.http.Handle(ACPPath, s.acp.http)
	l.http.refuse(ACPPath, s.acp.http.Refuse)
}

func (s *Service) drainACP(context.Context) {
	if s.acp.http != nil {
		s.acp.http.Close()
	}
}

func (s *Service) serveACP(w http.ResponseWriter, r *http.Request) {
	id, query := r.Header.Get("X-Agent-Id"), r.URL.Query().Get("agent_id")
	if id != "" && query != "" && id != query {
		plainText(w, http.StatusForbidden, "X-Agent-Id and agent_id differ: send one identity\n")
		return
	}
	conn := s.upgrade(w, r, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: s.config.ACP.EnvelopeBytes, Oversize: ws.Reject}})
	if conn == nil {
		return
	}
	opts := s.acpOptions(r.Context(), core.AgentID(cmp.Or(id, query)))
	opts.Trace = core.TraceOf(r.Header)
	opts.Link.Frames = s.frames.Connect(acp.Dialect, nil)
	s.hold(func() { acp.Serve(s.ctx, s.hub, conn, &opts) })
}

func (s *Service) acpOptions(ctx context.Context, id core.AgentID) acp.Options {
	c := s.config.ACP
	return acp.Options{
		AgentID: id, Principal: principalOf(ctx, core.Principal{}), Peers: s.acp.peers, HubName: "dragoman", MaxEnvelopeBytes: c.EnvelopeBytes,
		Deadline: c.Deadline, DelegateDeadline: c.DelegateDeadline, KeepTasks: c.KeepTasks,
		Link: s.webSocketLink(), Log: s.log,
	}
}

// ACPPath is where ACP peers post envelopes, and read those addressed to them.
const ACPPath = "/acp"
