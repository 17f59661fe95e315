package command

import (
	"bytes"
	"strings"
	"testing"
)

func TestALogForPeopleHasNoColoursOutsideATerminal(t *testing.T) {
	var file bytes.Buffer
	newLog(&file, "info", "human").Info("the hub is ready", "grpc", "127.0.0.1:50051")
	if got := file.String(); !strings.Contains(got, "the hub is ready grpc=127.0.0.1:50051") || strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want a line for people without escape sequences", got)
	}
}
