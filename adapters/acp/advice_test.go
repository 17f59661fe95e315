package acp

import (
	"fmt"
	"testing"
)

func TestAnErrorForWhatCannotBeDeliveredSaysWhatToDoInstead(t *testing.T) {
	onStage(t, func(t *testing.T, s *stage) {
		kit := s.enter("kit")
		for i, c := range []struct {
			what string
			code Code
		}{
			{`"to":"nobody","kind":"query","payload":{"question":"?"}`, CodePeerNotFound},
			{`"to":"nobody","kind":"delegate","payload":{"task":"!"}`, CodePeerNotFound},
			{`"to":"capability:none","kind":"query","payload":{"question":"?"}`, CodePeerNotFound},
			{`"to":"nobody","kind":"notify","payload":{"topic":"a"}`, CodePeerNotFound},
			{`"to":"nobody","kind":"ping"`, CodePeerNotFound},
			{`"to":"nobody","kind":"discover"`, CodePeerNotFound},
			{`"to":"nobody","kind":"negotiate"`, CodePeerNotFound},
			{`"kind":"query","payload":{"question":"?","domain":"none"}`, CodeUnknownDomain},
			{`"kind":"delegate","payload":{"task":"!","domain":"none"}`, CodeUnknownDomain},
		} {
			kit.say(`{"id":"%d",%s}`, i, c.what)
			kit.refused(fmt.Sprint(i), c.code, "send a discover without to")
		}
		kit.silent()
	})
}
