package e2e

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestTheListOfAgentsShowsWhatACovenAgentSaidOfItself(t *testing.T) {
	s := newStage(t, nil)
	stream := openCoven(t, s.service.Addresses().GRPC)
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
		if code := command.Run(t.Context(), []string{"agents", "-o", format, "--hub", "http://" + s.service.Addresses().HTTP}, command.Streams{Out: &out, Err: &out}); code != command.ExitDone {
			t.Errorf("%s: got the exit code %d, want %d", format, code, command.ExitDone)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: got no %q in it, want it shown\n%s", format, w, out.String())
			}
		}
	}
}
