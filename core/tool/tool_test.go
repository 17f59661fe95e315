package tool_test

import (
	"errors"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/tool"
)

func TestACallerNeedsEveryRequiredCapability(t *testing.T) {
	kick := tool.Definition{Name: "kick", Requires: []string{"mail", "admin"}}
	for name, c := range map[string]struct {
		tool tool.Definition
		has  []string
		want error
	}{
		"all":              {kick, []string{"admin", "mail", "more"}, nil},
		"one is missing":   {kick, []string{"mail"}, &core.Fault{Code: core.CodeNotAuthorized}},
		"none is there":    {kick, nil, &core.Fault{Code: core.CodeNotAuthorized}},
		"none is required": {tool.Definition{Name: "look"}, nil, nil},
	} {
		if err := c.tool.CheckCaller(c.has); !errors.Is(err, c.want) {
			t.Errorf("%s: got %v, want %v", name, err, c.want)
		}
	}
}
