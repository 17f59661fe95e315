package command

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/core"
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
			if diff := cmp.Diff(c.want, workplace(card)); diff != "" {
				t.Errorf("columns (-want +got):\n%s", diff)
			}
		})
	}
}
