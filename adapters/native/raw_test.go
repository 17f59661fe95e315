package native_test

import (
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// raw is a peer whose frames the test writes.
type raw struct {
	*setup
	end *coretest.End[[]byte, []byte]
}

func newPeer(id string) native.Options { return native.Options{AgentID: core.AgentID(id)} }

// raw connects such a peer, and reads hello.
func (s *setup) raw(opts native.Options) raw {
	s.Helper()
	end, _ := s.connect(opts)
	r := raw{s, end}
	r.next("hello")
	return r
}

func (r raw) send(frame string) {
	r.Helper()
	if err := r.end.Send(r.Context(), []byte(frame)); err != nil {
		r.Fatalf("%.200s: got %v, want the connection open", frame, err)
	}
}

// next returns the value of the next frame, which is of the kind.
func (r raw) next(want string) strictjson.Value {
	r.Helper()
	frame, err := r.end.Receive(r.Context())
	if err != nil {
		r.Fatalf("got %v, want a frame %s", err, want)
	}
	kind, v, err := wire.DecodeHub(frame)
	if err != nil || kind != want {
		r.Fatalf("got %s (%v), want a frame %s", frame, err, want)
	}
	return v
}

// wantError wants the next frame to be an error whose JSON contains the texts.
func (r raw) wantError(texts ...string) {
	r.Helper()
	v := r.next("error")
	for _, want := range texts {
		if !strings.Contains(string(v.Raw()), want) {
			r.Errorf("got %s, want %q in it", v.Raw(), want)
		}
	}
}
