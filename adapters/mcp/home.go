package mcp

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"net/http"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// What the server gives out, tokens, sessions and states, names the hub of the cluster that knows it:
// a client may come to any other one, which has the request answered there.

// homeLetters is how many letters of a name say which hub has made it.
const homeLetters = 2

// newName returns a name that nobody can guess. In a cluster it begins with the index of this hub.
func (s *Server) newName() string {
	name := rand.Text()
	if !s.hub.RPC().HasPeers() {
		return name
	}
	return letters(s.hub.RPC().Index()) + name[homeLetters:]
}

// letters returns the letters for an index, of which there are 1024.
func letters(index int) string {
	bits := uint16(index) << 6 //nolint:gosec // an index has 10 bits
	return base32.StdEncoding.EncodeToString([]byte{byte(bits >> 8), byte(bits)})[:homeLetters]
}

// homeOf returns the other hub that has made a name, if it is up.
func (s *Server) homeOf(name string) (hub string, ok bool) {
	index, ok := indexIn(name)
	if !ok || s.opts.Forward == nil {
		return "", false
	}
	return s.hub.RPC().At(index)
}

// indexIn returns the index that a name begins with.
func indexIn(name string) (index int, ok bool) {
	if len(name) < homeLetters {
		return 0, false
	}
	b, err := base32.StdEncoding.DecodeString(name[:homeLetters] + "AA====") // to whole bytes
	if err != nil {
		return 0, false
	}
	return int(b[0])<<2 | int(b[1])>>6, true
}

// tokenPrefix begins the tokens of agents.
const tokenPrefix = core.TokenPrefix + "mcp_"

// passOnToken has a request with the token of an agent answered by the hub that has the agent.
func (s *Server) passOnToken(w http.ResponseWriter, r *http.Request) bool {
	if s.opts.Forward == nil {
		return false
	}
	token, _ := tokenOf(r) // one that is wrong is refused later
	name, ok := strings.CutPrefix(token, tokenPrefix)
	if !ok {
		return false
	}
	hub, ok := s.homeOf(name)
	return ok && s.opts.Forward(w, r, core.Principal{}, hub)
}

// passOn has a message answered by the hub that began its session, or that its call waits at.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request, h *holder, m jsonrpc.Message) bool {
	if s.opts.Forward == nil {
		return false
	}
	hub, ok := s.homeOf(r.Header.Get(wire.HeaderSession))
	if state, _ := m.Params.Get("requestState").Text(); !ok && m.Method == wire.MethodCallTool && state != "" {
		hub, ok = s.hub.RPC().At(peek(state).Hub)
	}
	if !ok {
		return false
	}
	var p core.Principal // nobody in particular
	if h != s.anonymous {
		p = h.session.Identity().Principal
	}
	return s.opts.Forward(w, r, p, hub)
}

// peek returns what a state says without looking at its seal, which another hub may have made.
func peek(state string) (in sealed) {
	body, _, _ := strings.Cut(state, ".")
	text, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil || strictjson.Decode(text, strictjson.Limits{}, &in) != nil {
		return sealed{Hub: -1}
	}
	return in
}
