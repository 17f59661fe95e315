package render_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

func TestATypedAnswerSelectsTheOptionsThatItNames(t *testing.T) {
	options := []core.Option{{Label: "Red"}, {Label: "Blue, dark", Description: "as the sea"}, {Label: "3"}, {Label: "Green"}}
	one, several, open := question.Question{Options: options}, question.Question{Options: options, Several: true}, question.Question{}
	for _, tt := range []struct {
		q             question.Question
		method, value string
		want          core.Reply
	}{
		{one, "select", "Red", core.Reply{Selected: []string{"Red"}}},
		{one, "select", "Blue, dark: as the sea", core.Reply{Selected: []string{"Blue, dark"}}},
		{one, "select", "1", core.Reply{Text: "1"}},
		{one, "select", "Pink", core.Reply{Text: "Pink"}},
		{one, "input", "Red", core.Reply{Dismissed: true}},
		{one, "select", "", core.Reply{Dismissed: true}},
		{one, "cancelled", "", core.Reply{Dismissed: true}},
		{open, "input", " a, b ", core.Reply{Text: "a, b"}},
		{open, "input", "  ", core.Reply{Dismissed: true}},
		{several, "input", "red, 2, red", core.Reply{Selected: []string{"Red", "Blue, dark"}}},
		{several, "input", "Blue, dark", core.Reply{Selected: []string{"Blue, dark"}}},
		{several, "input", "3", core.Reply{Selected: []string{"3"}}},
		{several, "input", "4, 5, 0", core.Reply{Selected: []string{"Green"}, Text: "5, 0"}},
		{several, "input", " , ", core.Reply{Dismissed: true}},
		{several, "interview", "", core.Reply{Dismissed: true}},
	} {
		if diff := cmp.Diff(tt.want, render.DialogAnswer(tt.q, tt.method, tt.value)); diff != "" {
			t.Errorf("%s %q (-want +got):\n%s", tt.method, tt.value, diff)
		}
	}
}
