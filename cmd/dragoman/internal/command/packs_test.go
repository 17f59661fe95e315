package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestPacksShowTheWholeOfTheirLastError(t *testing.T) {
	why := "the MCP server of pack search at https://example.com/mcp " + strings.Repeat("answered something long, ", 10) + "give it a token (token_file)"
	hub := fakeHub(t, map[string]string{
		"GET /v1/packs": `{"packs":[{"id":"search","dialect":"mcp","tools":[],"child":{"state":"failed","restarts":4,"last_error":"` + why + `\u001b","retry_ms":30000}}]}`,
	})
	code, out, stderr := run(t, "packs", hub)
	if code != command.ExitDone {
		t.Fatalf("got %d and %s, want %d", code, stderr, command.ExitDone)
	}
	if got, want := fields(out)[1], "search mcp 0 failed 4 - "+why+`\x1b (tried again every 30s)`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestOnePackIsShownWithItsTools(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/packs": `{"packs":[{"id":"files","dialect":"mcp","tools":["files.read","files.write\u001b"]},{"id":"search","dialect":"mcp","tools":[]}]}`,
	})
	const heads = "ID DIALECT TOOLS STATE RESTARTS PID LAST ERROR"
	for id, want := range map[string][]string{
		"files":  {heads, "files mcp 2 ready - - -", "", "TOOLS", "files.read", `files.write\x1b`},
		"search": {heads, "search mcp 0 ready - - -"},
	} {
		code, out, stderr := run(t, "packs", id, hub)
		if diff := cmp.Diff(want, fields(out)); diff != "" || code != command.ExitDone {
			t.Errorf("%s: got %d, %s and (-want +got):\n%s", id, code, stderr, diff)
		}
	}
	if _, out, _ := run(t, "packs", "search", "--json", hub); out != "{\n  \"id\": \"search\",\n  \"dialect\": \"mcp\",\n  \"tools\": []\n}\n" {
		t.Errorf("got %s, want the pack as JSON", out)
	}
	if code, out, stderr := run(t, "packs", "fils", hub); code != command.ExitFailed || out != "" || stderr != "dragoman: no pack fils is here: 'dragoman packs' lists those that are\n" {
		t.Errorf("got %d, %q and %q, want an error that says where the ids are", code, out, stderr)
	}
}
