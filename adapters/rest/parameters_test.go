package rest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/rest"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

// Every path takes the query parameters of the document, and refuses all others.
func TestAnUnknownQueryParameterIsRefused(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for path, methods := range document().Paths {
		for method, op := range methods {
			at := strings.ReplaceAll(path, "{id}", "x")
			documentedHere := []string{}
			for _, p := range op.Parameters {
				if p.In == "query" {
					documentedHere = append(documentedHere, p.Name)
				}
			}
			g.do(strings.ToUpper(method), at+"?foo=1", "").refused(http.StatusBadRequest, core.CodeInvalid, `unknown query parameter "foo": `)
			g.do(strings.ToUpper(method), at+"?a=%zz", "").refused(http.StatusBadRequest, core.CodeInvalid, "the query cannot be read")
			for _, name := range []string{"by", "limit", "after", "before", "state", "agent", "from", "thread", "text", "wait", "follow"} {
				// With an unknown one too, so that no stream begins.
				p := g.do(strings.ToUpper(method), at+"?"+name+"=&~=", "").refused(http.StatusBadRequest, core.CodeInvalid, "unknown query parameter")
				refused := strings.Contains(p.Detail, `"`+name+`"`)
				if known := slices.Contains(documentedHere, name); refused == known {
					t.Errorf("%s %s?%s: got %q, want it known: %t, as documented", method, path, name, p.Detail, known)
				}
			}
		}
	}
}

func TestAMisspeltQueryParameterIsAnsweredWithTheOneThatWasMeant(t *testing.T) {
	g := start(t, hub.Options{}, rest.Options{})
	for path, want := range map[string]string{
		"/v1/tasks?sate=failed":                `unknown query parameter "sate": did you mean state?`,
		"/v1/tasks?State=failed":               `unknown query parameter "State": did you mean state?`,
		"/v1/tasks/x/events?folow=false":       `unknown query parameter "folow": did you mean follow?`,
		"/v1/usage?group=agent":                `unknown query parameter "group": use by`,
		"/v1/agents?state=idle":                `unknown query parameter "state": use limit, after`,
		"/v1/hub?pretty":                       `unknown query parameter "pretty": this path has none`,
		"/v1/hub?%0a%1b=1":                     `unknown query parameter "\n\x1b": this path has none`,
		"/v1/hub?" + strings.Repeat("x", 9000): `unknown query parameter "` + strings.Repeat("x", 64) + `": this path has none`,
	} {
		g.get(path).refused(http.StatusBadRequest, core.CodeInvalid, want)
	}
}
