package mcp

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Path is where the Server is mounted, with all paths below.
const Path = "/mcp"

// instructions describe the tools as a whole to a model.
const instructions = "These are the tools of a Dragoman hub: agents_list tells which other agents are here, agent_ask asks one and waits, " +
	"agent_delegate delegates work and agent_result returns its outcome. Tools of other names belong to packs on the hub."

// Server serves MCP clients. It is safe for concurrent use.
type Server struct {
	hub    *hub.Hub
	opts   Options
	inputs inputs
	seal   sealer

	mu        sync.Mutex
	holders   map[[sha256.Size]byte]*holder // of tokens that the server has issued
	admitted  map[[sha256.Size]byte]*holder // of principals, by their credential
	anonymous *holder                       // nil if callers need a token
	closed    *core.Fault
}

// New returns a Server for a hub. [Server.Close] ends it.
func New(h *hub.Hub, opts Options) *Server {
	s := &Server{hub: h, opts: opts.withDefaults(), seal: newSealer(), holders: make(map[[sha256.Size]byte]*holder), admitted: make(map[[sha256.Size]byte]*holder)}
	if p := s.opts.Anonymous; p.ID != "" {
		p.Dialect = Name
		s.anonymous = newHolder(h.Connect(hub.Identity{Principal: p, Dialect: Name, Deadline: s.opts.Deadline}), s.opts)
	}
	return s
}

// Issue returns a token whose holder acts on behalf of a session of the hub. It is valid until
// revoke is called, which also ends its calls. The caller must revoke it when the session
// ends.
func (s *Server) Issue(session *hub.Session) (token string, revoke func()) {
	token = tokenPrefix + s.newName()
	return token, s.put(sha256.Sum256([]byte(token)), session)
}

// put makes the token with the hash key valid for a session, until revoke is called.
func (s *Server) put(key [sha256.Size]byte, session *hub.Session) (revoke func()) {
	h := newHolder(session, s.opts)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		h.leave(s.closed)
	} else {
		s.holders[key] = h
	}
	return func() {
		s.mu.Lock()
		delete(s.holders, key)
		s.mu.Unlock()
		h.leave(core.NewFault(core.CodeUnauthenticated, "the connection that the MCP token belongs to has ended"))
	}
}

// admit returns the holder for a principal that has authenticated, which it keeps for its next
// requests. Each credential has its own: the roles of one are not those of another.
func (s *Server) admit(p core.Principal) (*holder, *core.Fault) {
	p.Dialect = Name
	key := sha256.Sum256(fmt.Appendf(nil, "%s\n%s\n%d\n%s", p.ID, p.Proof, p.Until.UnixNano(), p.Rights()))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed != nil {
		return nil, s.closed
	}
	if h := s.admitted[key]; h != nil && !h.session.Closed() {
		return h, nil
	}
	for other, h := range s.admitted {
		if h.session.Closed() { // its credential has expired or was revoked
			delete(s.admitted, other)
			h.leave(core.NewFault(core.CodeUnauthenticated, "the token was revoked"))
		}
	}
	h := newHolder(s.hub.Connect(hub.Identity{Principal: p, Dialect: Name, Deadline: s.opts.Deadline}), s.opts)
	s.admitted[key] = h
	return h, nil
}

// Close ends all calls and invalidates all tokens. Requests under way return soon after.
func (s *Server) Close() {
	s.mu.Lock()
	holders, admitted := s.holders, s.admitted
	s.holders, s.admitted, s.closed = nil, nil, core.NewFault(core.CodeUnreachable, "the hub is stopping")
	s.mu.Unlock()
	for _, h := range holders {
		h.leave(s.closed)
	}
	for _, h := range admitted {
		h.leave(s.closed)
		h.session.Close(s.closed)
	}
	if s.anonymous != nil {
		s.anonymous.leave(s.closed)
		s.anonymous.session.Close(s.closed)
	}
}

func tokenInPath(r *http.Request) string {
	return strings.Trim(strings.TrimPrefix(r.URL.Path, Path), "/")
}

// authenticate returns the holder of the token in the path or the Authorization header of a
// request, or of another credential that it has.
func (s *Server) authenticate(r *http.Request) (*holder, *core.Fault) {
	h, fault := s.holderOf(r)
	switch {
	case s.opts.Judged == nil:
	case fault != nil:
		s.opts.Judged(r, core.Principal{}, fault)
	default:
		s.opts.Judged(r, h.session.Identity().Principal, nil)
	}
	return h, fault
}

func (s *Server) holderOf(r *http.Request) (*holder, *core.Fault) {
	token, fault := tokenOf(r)
	if fault != nil {
		return s.holderOfOther(r, fault)
	}
	s.mu.Lock()
	h, closed := s.holders[sha256.Sum256([]byte(token))], s.closed
	s.mu.Unlock()
	switch {
	case closed != nil:
		return nil, closed
	case h != nil && !h.expired():
		if wrong := s.beside(r, token); wrong != nil {
			return nil, wrong
		}
		return h, nil
	}
	if s.opts.Authenticate != nil {
		if h, fault := s.holderOfToken(r, token); h != nil || fault != nil {
			return h, fault
		}
	}
	switch {
	case token == "" && s.anonymous != nil:
		return s.anonymous, nil
	case token == "":
		return nil, core.NewFault(core.CodeUnauthenticated, "the token is missing: send the one that the operator of the hub gave you, or the mcp_token of Welcome, as Authorization: Bearer, or behind %s/ in the path", Path)
	}
	return nil, core.NewFault(core.CodeUnauthenticated,
		"the token is unknown or has expired: send the one that the operator of the hub gave you; the mcp_token of an agent ends with its connection: connect again and take that of the new Welcome")
}

// holderOfOther returns the holder of a credential that is no token of an agent, which fault says.
func (s *Server) holderOfOther(r *http.Request, fault *core.Fault) (*holder, *core.Fault) {
	if s.opts.Authenticate != nil && tokenInPath(r) == "" {
		if p, err := s.opts.Authenticate(r); err == nil && p.ID != "" {
			return s.admit(p)
		}
	}
	return nil, fault
}

// holderOfToken returns the holder of a token that the operator gave, or the refusal of what else the request
// presents. It returns neither for a token that nobody knows.
func (s *Server) holderOfToken(r *http.Request, token string) (*holder, *core.Fault) {
	if tokenInPath(r) != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Authorization", "Bearer "+token)
	}
	switch p, err := s.opts.Authenticate(r); {
	case err == nil && p.ID != "":
		return s.admit(p)
	case err != nil && (presentsMore(r) || core.AsFault(err).Code == core.CodeNotAuthorized):
		return nil, core.AsFault(err)
	}
	return nil, nil
}

// beside returns what is wrong with the credentials that a request presents besides the token of
// an agent; nil for nothing. The token says whose session it is, but does not excuse them.
func (s *Server) beside(r *http.Request, token string) *core.Fault {
	if keys := r.Header.Values("X-API-Key"); len(keys) > 1 || len(keys) == 1 && strings.TrimSpace(keys[0]) != token {
		return core.NewFault(core.CodeUnauthenticated, "the tokens in Authorization, or in the path, and X-API-Key differ: send one of them")
	}
	if s.opts.Authenticate != nil && presentsProof(r) {
		if _, err := s.opts.Authenticate(r); err != nil {
			return core.AsFault(err)
		}
	}
	return nil
}

// presentsMore reports whether a request has a credential besides a token in Authorization or in
// the path. The words of its refusal are then not about that token.
func presentsMore(r *http.Request) bool {
	return len(r.Header.Values("X-API-Key")) > 0 || presentsProof(r)
}

// presentsProof reports whether a request has a credential that decides before any token does.
func presentsProof(r *http.Request) bool {
	for _, name := range []string{"X-SSH-Pubkey", "X-SSH-Signature", "X-SSH-Timestamp", "X-SSH-Nonce"} {
		if strings.Join(r.Header.Values(name), "") != "" {
			return true
		}
	}
	return r.TLS != nil && len(r.TLS.PeerCertificates) > 0
}

// tokenOf returns the token in the path or the Authorization header of a request, "" if it has
// none.
func tokenOf(r *http.Request) (string, *core.Fault) {
	token := tokenInPath(r)
	values := r.Header.Values("Authorization")
	if len(values) == 0 {
		return token, nil
	}
	scheme, bearer, _ := strings.Cut(values[0], " ")
	bearer = strings.TrimSpace(bearer)
	switch {
	case len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || bearer == "":
		return "", core.NewFault(core.CodeUnauthenticated, "the Authorization header is not understood: send Bearer and the token, or the token in the path")
	case token != "" && token != bearer:
		return "", core.NewFault(core.CodeUnauthenticated, "the token in the path and the one in the Authorization header differ: send one")
	}
	return bearer, nil
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.passOnToken(w, r) {
		return
	}
	switch r.Method {
	case http.MethodPost:
		s.post(w, r)
	case http.MethodGet:
		s.listen(w, r)
	default: // there is no session to delete
		w.Header().Set("Allow", "GET, POST")
		s.refuse(w, http.StatusMethodNotAllowed, nil, invalid("method %s is not allowed: POST a JSON-RPC message, or GET the event stream", r.Method))
	}
}
