package command_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestWideAgentsShowWhereTheyRun(t *testing.T) {
	for name, c := range map[string]struct{ metadata, want string }{
		"all": {
			`{"backend":"mux","workspaces":["dev","personal"],"working_directory":"/p","git":{"branch":"main","commit":"c0ffee1234","dirty":true,"ahead":2,"behind":1}}`,
			"mux dev,personal /p main@c0ffee1* +2 -1",
		},
		"clean":          {`{"git":{"branch":"main","dirty":false,"ahead":0}}`, "- - - main"},
		"nothing":        {`{}`, "- - - -"},
		"something else": {`{"backend":7,"workspaces":"dev","git":[true],"working_directory":null}`, "- - - -"},
	} {
		t.Run(name, func(t *testing.T) {
			hub := fakeHub(t, map[string]string{
				"GET /v1/agents": fmt.Sprintf(`{"agents":[{"id":"a","dialect":"coven","load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z","metadata":%s}]}`, c.metadata),
			})
			code, out, stderr := run(t, "agents", "-o", "wide", hub)
			if code != command.ExitDone {
				t.Fatalf("got %d and %s, want %d", code, stderr, command.ExitDone)
			}
			want := []string{
				"ID NAME DIALECT STATE TASKS CAPABILITIES QUEUED DOMAINS MODEL FEATURES SINCE HEALTH RESTARTS PID LAST ERROR BACKEND WORKSPACES DIRECTORY GIT",
				"a - coven idle 0/1 - 0 - - - 2026-01-02 03:04:05 - - - - " + c.want,
			}
			if diff := cmp.Diff(want, fields(out)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestAnAgentOfTheSettingsWhoseIDIsTakenHasALineOfItsOwn(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/agents": `{"agents":[{"id":"a","name":"A","dialect":"coven","load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z",
		"refused":{"state":"failed","restarts":0,"last_error":"agent a already registered","retry_ms":5000}}]}`})
	code, out, stderr := run(t, "agents", "-o", "wide", hub)
	if code != command.ExitDone {
		t.Fatalf("got %d and %s, want %d", code, stderr, command.ExitDone)
	}
	want := []string{
		"ID NAME DIALECT STATE TASKS CAPABILITIES QUEUED DOMAINS MODEL FEATURES SINCE HEALTH RESTARTS PID LAST ERROR BACKEND WORKSPACES DIRECTORY GIT",
		"a A coven idle 0/1 - 0 - - - 2026-01-02 03:04:05 - - - - - - - -",
		"a (of the settings) - failed 0/0 - 0 - - - - - 0 - agent a already registered (tried again every 5s) - - - -",
	}
	if diff := cmp.Diff(want, fields(out)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAnAgentIsShownWithWhatItCanBeSetTo(t *testing.T) {
	const modes = `"modes":{"currentModeId":"auto","availableModes":[{"id":"default","name":"Manual"},{"id":"auto\u001b","name":"Auto"}]}`
	const options = `"configOptions":[{"id":"model","name":"Model","type":"select","currentValue":"a","options":[{"group":"g","name":"G","options":[{"value":"a","name":"A"},{"value":"b","name":"B"}]}]},{"id":"web","name":"Web","type":"boolean","currentValue":false}]`
	table := []string{"ID NAME DIALECT STATE TASKS CAPABILITIES", "a - editor idle 0/1 -"}
	for metadata, want := range map[string][]string{
		modes + `,` + options: append(slices.Clone(table), "", "OPTION IS MAY BE", "model a a, b", "web false true, false", `mode auto default, auto\x1b`),
		`"models":{"currentModelId":"m","availableModels":[{"modelId":"m"}]}`: append(slices.Clone(table), "", "OPTION IS MAY BE", "model m m"),
		`"modes":"all of them"`:    table,
		`"agentInfo":{"name":"x"}`: table,
	} {
		hub := fakeHub(t, map[string]string{
			"GET /v1/agents/a": `{"id":"a","dialect":"editor","load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z","metadata":{` + metadata + `}}`,
		})
		code, out, stderr := run(t, "agents", "a", hub)
		if code != command.ExitDone {
			t.Fatalf("got %d and %s, want %d", code, stderr, command.ExitDone)
		}
		if diff := cmp.Diff(want, fields(out)); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", metadata, diff)
		}
	}
}

// The table of agents has a part of the last error that can be read, one agent all of it.
func TestTheLastErrorOfAnAgentIsReadable(t *testing.T) {
	const long = "the process has ended: exit status 1: node:internal/modules/cjs/loader:1228 throw err; Error: Cannot find module '/home/ana/agents/gemini/dist/index.js'"
	const agent = `{"id":"gemini","dialect":"editor","load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z",` +
		`"child":{"state":"failed","restarts":4,"last_error":"` + long + `"}}`
	const fine = `{"id":"shout","dialect":"coven","load":{"state":"idle"},"max_concurrent":1,"since":"2026-01-02T03:04:05Z"}`
	hub := fakeHub(t, map[string]string{
		"GET /v1/agents": `{"agents":[` + agent + `,` + fine + `]}`, "GET /v1/agents/gemini": agent,
	})
	const again = " (tried again after 'dragoman agents restart gemini' or SIGHUP)"
	const part = "the process has ended: exit … Cannot find module '/home/ana/agents/gemini/dist/index.js'" + again
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"agents"}, []string{
			"ID NAME DIALECT STATE TASKS CAPABILITIES LAST ERROR",
			"gemini - editor failed 0/1 - " + part,
			"shout - coven idle 0/1 - -",
		}},
		{[]string{"agents", "gemini"}, []string{
			"ID NAME DIALECT STATE TASKS CAPABILITIES LAST ERROR", "gemini - editor failed 0/1 - " + part, "", "last error: " + long + again,
		}},
	} {
		code, out, stderr := run(t, append(tt.args, hub)...)
		if diff := cmp.Diff(tt.want, fields(out)); diff != "" || code != command.ExitDone {
			t.Errorf("%q: got %d, %s and (-want +got):\n%s", tt.args, code, stderr, diff)
		}
	}
}

func TestNoAgentsOfADrainedHubAreNoneToStart(t *testing.T) {
	for hub, want := range map[string]string{
		`{"draining":"an operator drains it"}`: "no agents are connected: the hub takes none until it is started again (an operator drains it)\n",
		`{}`:                                   "no agents are connected: start one, such as 'dragoman agent --name shout -- tr a-z A-Z'\n",
	} {
		at := fakeHub(t, map[string]string{"GET /v1/agents": `{"agents":[]}`, "GET /v1/hub": hub})
		if code, out, stderr := run(t, "agents", at); code != command.ExitDone || out != "" || stderr != want {
			t.Errorf("got %d, %q and %q, want %q", code, out, stderr, want)
		}
	}
}
