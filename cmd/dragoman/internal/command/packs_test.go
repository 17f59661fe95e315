package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestPacksShowTheWholeOfTheirLastError(t *testing.T) {
	why := "the MCP server of pack search at https://example.com/mcp " + strings.Repeat("answered something long, ", 10) + "give it a token (token_file)"
	hub := fakeHub(t, map[string]string{
		"GET /v1/packs": `{"packs":[{"id":"search","dialect":"mcp","tools":[],"child":{"state":"failed","restarts":4,"last_error":"` + why + `\u001b"}}]}`,
	})
	code, out, stderr := run(t, "packs", hub)
	if code != command.ExitDone {
		t.Fatalf("got %d and %s, want %d", code, stderr, command.ExitDone)
	}
	if got, want := fields(out)[1], "search mcp 0 failed 4 - "+why+`\x1b`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
