package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestWhereAnAgentWorksIsShown(t *testing.T) {
	for name, c := range map[string]struct {
		metadata string
		want     []string
	}{
		"all": {
			`{"backend":"mux","workspaces":["dev","personal"],"working_directory":"/p","git":{"branch":"main","commit":"c0ffee1234","dirty":true,"ahead":2,"behind":1}}`,
			[]string{"mux", "dev,personal", "/p", "main@c0ffee1* +2 -1"},
		},
		"clean":          {`{"git":{"branch":"main","dirty":false,"ahead":0}}`, []string{"-", "-", "-", "main"}},
		"nothing":        {`{}`, []string{"-", "-", "-", "-"}},
		"something else": {`{"backend":7,"workspaces":"dev","git":[true],"working_directory":null}`, []string{"-", "-", "-", "-"}},
	} {
		t.Run(name, func(t *testing.T) {
			var card core.Card
			if err := json.Unmarshal([]byte(c.metadata), &card.Metadata); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, surroundings(card)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheListOfAgentsShowsWhatACovenAgentSaidOfItself(t *testing.T) {
	s := newStage(t, nil)
	stream := openCoven(t, s.service.bound.GRPC)
	register := &wire.RegisterAgent{AgentId: "fold", Metadata: &wire.AgentMetadata{
		WorkingDirectory: "/home/user/project", Backend: "cli", Workspaces: []string{"dev"}, Git: &wire.GitInfo{Branch: "topic", Dirty: true},
	}}
	if err := stream.Send(&wire.AgentMessage{Payload: &wire.AgentMessage_Register{Register: register}}); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string][]string{
		"wide": {"BACKEND", "cli", "WORKSPACES", "dev", "DIRECTORY", "/home/user/project", "GIT", "topic*"},
		"json": {`"backend": "cli"`, `"branch": "topic"`, `"dirty": true`, `"ahead": 0`, `"working_directory": "/home/user/project"`},
	} {
		var out earshot
		if code := run(t.Context(), []string{"agents", "-o", format, "--hub", "http://" + s.service.bound.HTTP}, streams{out: &out, err: &out}); code != exitDone {
			t.Errorf("%s: got the exit code %d, want %d", format, code, exitDone)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: got no %q in it, want it shown\n%s", format, w, out.String())
			}
		}
	}
}
