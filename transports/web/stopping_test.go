package web_test

import (
	"net"
	"testing"

	"github.com/dragoman-hub/dragoman/transports/web"
)

func TestAConnectionBeyondTheLimitDoesNotDelayStop(t *testing.T) {
	accepted := make(chan struct{})
	_, addr := serve(t, web.Options{Always: []string{"/hello"}, Admit: func(net.Conn) (bool, bool) {
		close(accepted)
		return false, true
	}}, hello) // the end of the test stops it
	dial(t, addr)
	<-accepted
}
