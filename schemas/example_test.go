package schemas_test

import (
	"encoding/json"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/schemas"
)

// commentBehind is a comment of an annotated example.
var commentBehind = regexp.MustCompile(`(?m)(^|[ ]+)// .*$`)

func TestAnAnnotatedExampleIsTheExampleWithACommentOnEveryMember(t *testing.T) {
	for _, kind := range typesIn(t, "acp") {
		t.Run(kind, func(t *testing.T) {
			e, ok := schemas.ACPExample(kind)
			if !ok || e.About == "" {
				t.Fatalf("got %t and %q, want an example and what it is for", ok, e.About)
			}
			if err := schemas.ACP(kind).Validate(e.JSON); err != nil {
				t.Errorf("the example: got %v, want that it obeys its schema", err)
			}
			text := e.Annotated()
			var want, got any
			if err := json.Unmarshal(e.JSON, &want); err != nil {
				t.Fatal(err)
			}
			bare := commentBehind.ReplaceAllString(text, "")
			if err := json.Unmarshal([]byte(bare), &got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("without its comments: got %v and\n%s\nwant the example", err, bare)
			}
			for line := range strings.Lines(text) {
				top := strings.HasPrefix(line, `  "`) || strings.HasPrefix(line, "  // or ")
				if top && !strings.Contains(line, "// ") {
					t.Errorf("got %q, want a comment", line)
				}
			}
		})
	}
	if _, ok := schemas.ACPExample("nothing"); ok {
		t.Error("a kind that there is not: got an example, want none")
	}
}

func TestAnAnnotatedExampleNamesWhatIsRequiredWhatMayBeChosenAndWhatElseThereMayBe(t *testing.T) {
	e, _ := schemas.ACPExample("delegate")
	text := e.Annotated()
	for _, want := range []string{
		"// delegate: Do this.", "what to do, in words (required)", "how urgent it is: normal, urgent\n",
		`// or "max_tokens": how long`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("got\n%s\nwant %q in it", text, want)
		}
	}
}
