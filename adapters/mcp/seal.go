package mcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// sealer seals the state that a client carries from a call to its repetition, with a key that
// lives as long as the process.
type sealer [sha256.Size]byte

func newSealer() (s sealer) {
	_, _ = rand.Read(s[:]) // it never fails
	return s
}

// sealed is the state that a client sends back: the run to continue and its round, and the principal, the
// time and the call for which it is valid.
type sealed struct {
	Run       string `json:"run"`
	Round     int    `json:"round"` // of the run
	Principal string `json:"principal"`
	Call      []byte `json:"call"`
	Until     int64  `json:"until"` // in seconds since 1970
	// Hub is the index of the hub that the call waits at.
	Hub int `json:"hub,omitempty"`
}

func (s sealed) until() time.Time { return time.Unix(s.Until, 0) }

// sealState returns the state for a call, opaque to the client.
func (s *Server) sealState(q *request, p callParams, run string, round int, until time.Time) string {
	return s.seal.state(sealed{Run: run, Round: round, Principal: q.principal().ID, Call: digest(p), Until: until.Unix(), Hub: s.hub.RPC().Index()})
}

// unseal returns the state that a repeated call carries. It refuses one that was altered, has
// expired, or belongs to another principal or another call.
func (s *Server) unseal(q *request, p callParams) (*sealed, *jsonrpc.Error) {
	refuse := func(why string) (*sealed, *jsonrpc.Error) {
		s.hub.Count(Name + ".refused.state")
		return nil, badParams("requestState: %s: call the tool again without it", why)
	}
	in := peek(p.State)
	switch {
	case !hmac.Equal([]byte(p.State), []byte(s.seal.state(in))): // of which there is one text alone
		return refuse("it is not what the server sent, or the hub was restarted since")
	case in.Principal != q.principal().ID:
		return refuse("it belongs to another principal")
	case !hmac.Equal(in.Call, digest(p)):
		return refuse("it belongs to a call of another tool or with other arguments")
	case !time.Now().Before(in.until()):
		return refuse("it has expired")
	}
	return &in, nil
}

// state returns the text of a state: its JSON and the signature of that.
func (k sealer) state(of sealed) string {
	body := strictjson.Encode(of)
	m := hmac.New(sha256.New, k[:])
	m.Write(body)
	return base64.RawURLEncoding.EncodeToString(body) + "." + base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// digest identifies a call by its tool and its arguments, in whatever order and with whatever
// spaces the client writes them.
func digest(p callParams) []byte {
	arguments := []byte(p.Arguments)
	var v any
	if strictjson.Decode(arguments, strictjson.Limits{}, &v) == nil {
		arguments = strictjson.Encode(v)
	}
	h := sha256.New()
	h.Write([]byte(p.Name))
	h.Write([]byte{0})
	h.Write(arguments)
	return h.Sum(nil)
}
