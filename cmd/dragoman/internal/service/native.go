package service

import (
	"cmp"
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// NativePath is the WebSocket path of native peers.
const NativePath = "/ws/native"

// mountNative serves native peers over WebSocket.
func (s *Service) mountNative(l *listeners) {
	if l.http != nil {
		l.http.Get(NativePath, s.serveNative)
	}
}

func (s *Service) serveNative(w http.ResponseWriter, r *http.Request) {
	id, query := r.Header.Get("X-Agent-Id"), r.URL.Query().Get("agent_id")
	if id != "" && query != "" && id != query {
		plainText(w, http.StatusForbidden, "X-Agent-Id and agent_id differ: send one identity\n")
		return
	}
	id = cmp.Or(id, query)
	if id != "" {
		if err := core.CheckAgentID(core.AgentID(id)); err != nil {
			plainText(w, http.StatusBadRequest, core.AsFault(err).Message+"\n")
			return
		}
	}
	c := s.config.Native
	conn := s.upgrade(w, r, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: c.FrameBytes, Oversize: ws.Reject}})
	if conn == nil {
		return
	}
	opts := native.Options{
		Principal: principalOf(r.Context(), core.Principal{}), AgentID: core.AgentID(id), Version: Version,
		FrameBytes: c.FrameBytes, Deadline: c.Deadline, Link: s.webSocketLink(), Log: s.log,
		Trace: core.TraceOf(r.Header),
	}
	opts.Link.Frames = s.frames.Connect(native.Dialect, nil)
	s.hold(func() { native.Accept(s.ctx, s.hub, conn, opts) })
}
