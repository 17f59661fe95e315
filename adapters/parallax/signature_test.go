package parallax_test

import (
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/parallax"
	parallaxclient "github.com/dragoman-hub/dragoman/adapters/parallax/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestWorkerAndHubVerifyEachOther(t *testing.T) {
	withHub(t, func(s *setup) {
		mine, theirs := coretest.Pipe[[]byte, []byte](4)
		secret := func(id core.AgentID) []byte { return []byte("of " + id) }
		go parallax.Serve(s.Context(), s.hub, theirs, &parallax.Options{AgentID: "w", Secret: secret, RequireSignature: true})
		ended := make(chan error, 1)
		go func() {
			ended <- parallaxclient.Work(s.Context(), mine, core.Card{ID: "w"}, echo, parallaxclient.WorkOptions{Secret: []byte("of w")})
		}()
		synctest.Wait()
		a := s.requester()
		if got := a.answer(a.ask("w", "hello")); got.Fault != nil || got.Text == "" {
			t.Errorf("got %+v, want an answer", got)
		}
		_ = mine.Close(link.Reason{Cause: link.Normal})
		<-ended
	})
}

func TestAWorkerWithASecretIgnoresUnsignedMessages(t *testing.T) {
	withHub(t, func(s *setup) {
		mine, theirs := coretest.Pipe[[]byte, []byte](4)
		go parallax.Serve(s.Context(), s.hub, theirs, &parallax.Options{AgentID: "w"})
		err := parallaxclient.Work(s.Context(), mine, core.Card{ID: "w"}, echo, parallaxclient.WorkOptions{Secret: []byte("k")})
		if err == nil || !strings.Contains(err.Error(), "no answer to register") {
			t.Errorf("got %v, want an unsigned registered ignored", err)
		}
	})
}
