package acp_test

import (
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

func TestTheErrorForAnUnknownRecipientSuggestsAFix(t *testing.T) {
	withHub(t, func(t *testing.T, s *setup) {
		kit := s.peer("kit")
		for i, c := range []struct {
			what string
			code wire.Code
		}{
			{`"to":"nobody","kind":"query","payload":{"question":"?"}`, wire.CodePeerNotFound},
			{`"to":"nobody","kind":"delegate","payload":{"task":"!"}`, wire.CodePeerNotFound},
			{`"to":"capability:none","kind":"query","payload":{"question":"?"}`, wire.CodePeerNotFound},
			{`"to":"nobody","kind":"notify","payload":{"topic":"a"}`, wire.CodePeerNotFound},
			{`"to":"nobody","kind":"ping"`, wire.CodePeerNotFound},
			{`"to":"nobody","kind":"discover"`, wire.CodePeerNotFound},
			{`"to":"nobody","kind":"negotiate"`, wire.CodePeerNotFound},
			{`"kind":"query","payload":{"question":"?","domain":"none"}`, wire.CodeUnknownDomain},
			{`"kind":"delegate","payload":{"task":"!","domain":"none"}`, wire.CodeUnknownDomain},
		} {
			kit.send(`{"id":"%d",%s}`, i, c.what)
			kit.refused(fmt.Sprint(i), c.code, "send a discover without to")
		}
		kit.expectNothing()
	})
}
