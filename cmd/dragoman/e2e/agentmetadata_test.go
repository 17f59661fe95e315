package e2e

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
	wire "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestAgentsShowsTheMetadataOfACovenAgent(t *testing.T) {
	h := newTestHub(t, nil)
	stream := openCoven(t, h.service.Addresses().GRPC)
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
		code, out, stderr := h.run(t, "agents", "-o", format)
		if code != command.ExitDone {
			t.Errorf("%s: got the exit code %d and %q, want %d", format, code, stderr, command.ExitDone)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("%s: got no %q in it, want it shown\n%s", format, w, out)
			}
		}
	}
}
