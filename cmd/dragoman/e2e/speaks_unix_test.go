//go:build unix

package e2e

import (
	"os"
	"reflect"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/parallax"
	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// A plan, a list of commands, the status of an extension, and whatever comes to a protocol later: no dialect by
// which the agent may join has a word of its own for them.
func TestWhatOnlyTheProtocolOfAnAgentKnowsFailsNoTurn(t *testing.T) {
	told := map[string][]string{
		"editor": {"editor plan", "editor available_commands_update", "editor from_the_future"},
		"pi-rpc": {"pi-rpc extension_ui_request.setStatus", "pi-rpc from_the_future"},
	}
	plays := map[string]string{"editor": "editor", "pi-rpc": "pi"}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, joins := range tier.Pick([]string{coven.Name}, []string{coven.Name, parallax.Dialect, acp.Dialect, native.Dialect}) {
		for speaks, want := range told {
			t.Run(speaks+" over "+joins, func(t *testing.T) {
				h := newTestHub(t, nil)
				h.startLeaver(t, "kid", "exec "+self, "--speaks", speaks, "--dialect", joins, "--env", playsChild+"="+plays[speaks])
				asker := connectREST(t, h)
				defer asker.leave()
				x := asker.open(query{to: "kid", content: toldBeside}, true)
				if got := x.wait(t); got.End != "done" || got.Text != slowAnswer(toldBeside) {
					t.Errorf("got %+v, want the answer", got)
				}
				if got := x.reportsOf("foreign"); !reflect.DeepEqual(got, want) {
					t.Errorf("the hub has %q, want %q", got, want)
				}
			})
		}
	}
}
