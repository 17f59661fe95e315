package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
)

func TestAPageShowsCommandsAndToolsWithoutOutput(t *testing.T) {
	for _, tt := range []struct {
		message conversation.Message
		want    render.Part
	}{
		{conversation.ToolMessage("1", "touch", "", true, 0), render.Part{Kind: "tool", Folded: true, Title: "result of touch, an error"}},
		{conversation.BashMessage("false", "", 1, false, false, false, 0), render.Part{Kind: "tool", Folded: true, Title: "$ false (exit code 1)"}},
		{conversation.BashMessage("sleep 9", "a", 0, true, false, false, 0), render.Part{Kind: "tool", Folded: true, Title: "$ sleep 9 (cancelled)", Text: "a"}},
		{conversation.BashMessage("true", "", 0, false, false, false, 0), render.Part{Kind: "tool", Folded: true, Title: "$ true"}},
	} {
		if d := cmp.Diff([]render.Part{tt.want}, render.Parts(tt.message)); d != "" {
			t.Errorf("%s (-want +got):\n%s", tt.message.JSON, d)
		}
	}
}
