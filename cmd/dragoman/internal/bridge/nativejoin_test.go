package bridge_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/agent"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
)

func TestALineThatIsNoFrameIsAnsweredAndNotPassedOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		process, hub, _ := bridged(t.Context(), t)
		for line, why := range map[string]string{
			"Listening on port 80": "a line of stdout is no frame: write logs to stderr; it begins with",
			"{\xff":                "the line is not UTF-8",
			`{"call":{"id":"1","act":"join","command":{"card":7}}}`: `"id":"1"`,
		} {
			process.says(line)
			process.hears(`{"error":`, `"code":"invalid"`, why)
		}
		process.says("", `{"call":{"id":"2","act":"list","command":{"what":"agents"}}}`)
		hub.hears(`"act":"list"`)
		process.says(`{"later":{"join":true},"of":"join"}`)
		hub.hears(`"later"`)
	})
}

func TestTheCardOfTheSettingsIsInEveryJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		joined := 0
		process, hub, _ := bridgedAs(t.Context(), t, core.Card{ID: "kid", Name: "Kid", Capabilities: []string{"play"}}, func() { joined++ })
		for range 2 {
			process.says(`{"call":{"id":"1","act":"join","command":{"card":{"id":"parrot","name":"Parrot","capabilities":["sing"]}}}}`)
			hub.hears(`"id":"kid"`, `"name":"Kid"`, `"capabilities":["play","sing"]`)
			hub.says(`{"hello":{"native":1}}`, `{"result":{"id":"other"}}`, `{"result":{"id":"1","agent":"kid"}}`)
			process.hears(`"hello"`)
			process.hears(`"other"`)
			process.hears(`"agent":"kid"`)
		}
		if joined != 2 {
			t.Errorf("got told %d times that it has joined, want once for each join", joined)
		}
	})
}

func TestTheEndOfABridgeSaysWhetherToComeAgain(t *testing.T) {
	const join = `{"call":{"id":"1","act":"join","command":{"card":{}}}}`
	refused := func(code, more string) string {
		return `{"error":{"id":"1","fault":{"code":"` + code + `","message":"because of ` + code + `"}` + more + `}}`
	}
	for what, tt := range map[string]struct {
		hub   func(process, hub side)
		end   bool // it is the hub's
		final bool
		says  string
	}{
		"a hub that has another agent of the name": {func(_, hub side) { hub.says(refused("conflict", "")) }, true, true, "because of conflict"},
		"a hub that does not know it":              {func(_, hub side) { hub.says(refused("unauthenticated", `,"fatal":true`)) }, true, true, "because of unauthenticated"},
		"a hub that stops": {func(_, hub side) {
			hub.says(refused("unreachable", `,"fatal":true`))
			_ = hub.conn.Close(link.Reason{Cause: link.ShuttingDown})
		}, true, false, "because of unreachable"},
		"a hub that is lost":         {func(_, hub side) { _ = hub.conn.Close(link.Reason{Cause: link.PeerGone}) }, true, false, "lost"},
		"a server that says nothing": {func(side, side) {}, true, true, client.ErrNotAccepted.Error()},
		"a hub without room, and a process that ends because of it": {func(process, hub side) {
			hub.says(refused("overloaded", ""))
			process.hears("overloaded")
			_ = process.conn.Close(link.Reason{Cause: link.PeerGone})
		}, false, false, "the hub refused its join (because of overloaded)"},
		"a process that ends after all": {func(process, hub side) {
			hub.says(refused("overloaded", ""))
			process.hears("overloaded")
			process.says(join)
			hub.hears(`"join"`)
			hub.says(`{"result":{"id":"1"}}`)
			process.hears("result")
			_ = process.conn.Close(link.Reason{Cause: link.PeerGone})
		}, false, false, "lost"},
	} {
		synctest.Test(t, func(t *testing.T) {
			process, hub, ran := bridged(t.Context(), t)
			process.says(join)
			hub.hears(`"join"`)
			tt.hub(process, hub)
			err := <-ran
			var end *agent.HubEnd
			if is := errors.As(err, &end); is != tt.end || is && end.Final != tt.final || !strings.Contains(err.Error(), tt.says) ||
				strings.Contains(err.Error(), "refused") != strings.Contains(tt.says, "refused") {
				t.Errorf("%s: got %v (final: %t), want %q (of the hub: %t, final: %t)", what, err, end != nil && end.Final, tt.says, tt.end, tt.final)
			}
		})
	}
}
