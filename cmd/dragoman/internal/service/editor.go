package service

import (
	"net/http"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/web"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// mountEditor serves editors, for which the hub is an agent, over WebSocket.
func (s *Service) mountEditor(l *listeners) {
	if l.http != nil {
		l.http.Get(editor.Path, s.serveEditor)
	}
}

func (s *Service) serveEditor(w http.ResponseWriter, r *http.Request) {
	agent, err := core.ParseAddress(r.URL.Query().Get("agent"))
	if err == nil && agent.IsZero() {
		err = core.NewFault(core.CodeInvalid, "?agent= is missing: name the agent that answers, such as %s?agent=coder", editor.Path)
	}
	if err != nil {
		why := core.AsFault(err)
		web.Problem(w, http.StatusBadRequest, string(why.Code), why.Message)
		return
	}
	c := s.config.Editor
	conn := s.upgrade(w, r, ws.AcceptOptions{Limits: ws.Limits{ReadLimit: c.MessageBytes, Oversize: ws.Reject}})
	if conn == nil {
		return
	}
	opts := editor.Options{
		Agent:     agent,
		Principal: principalOf(r.Context(), core.Principal{ID: editor.Dialect, Dialect: editor.Dialect, Operator: true}),
		Deadline:  c.Deadline, DropTasks: !c.KeepTasks, MaxMessageBytes: c.MessageBytes, Version: Version,
		Link: s.webSocketLink(), Log: s.log, Trace: core.TraceOf(r.Header),
	}
	opts.Link.Frames = s.frames.Connect(editor.Dialect, nil)
	s.hold(func() { editor.Serve(s.ctx, s.hub, conn, opts) })
}
