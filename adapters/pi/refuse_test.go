package pi_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestWhoMayNotConnectIsToldSoForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := coretest.Pipe[[]byte, []byte](1)
		start := time.Now()
		var took time.Duration
		go func() {
			pi.Refuse(t.Context(), near, "not you")
			took = time.Since(start)
		}()
		for _, c := range []struct{ line, want string }{
			{`{"id":"1","type":"prompt"}`, `{"id":"1","type":"response","command":"prompt","success":false,"error":"not you"}`},
			{`{"type":"prompt"}`, `{"type":"response","command":"prompt","success":false,"error":"not you"}`},
			{`garbage`, `{"type":"response","command":"unknown","success":false,"error":"not you"}`},
			{`{"id":"` + strings.Repeat("1", 70<<10) + `"}`, `{"type":"response","command":"unknown","success":false,"error":"not you"}`},
		} {
			if err := far.Send(t.Context(), []byte(c.line)); err != nil {
				t.Fatal(err)
			}
			if got, err := far.Receive(t.Context()); err != nil || string(got) != c.want {
				t.Errorf("%.40s: got %s, %v, want %s", c.line, got, err, c.want)
			}
		}
		if _, err := far.Receive(t.Context()); err == nil {
			t.Error("got the connection open after 10 s, want it closed")
		}
		synctest.Wait()
		if took != 10*time.Second {
			t.Errorf("got it closed after %v, want 10 s", took)
		}
		far.Close(link.Reason{Cause: link.Normal})
	})
}
