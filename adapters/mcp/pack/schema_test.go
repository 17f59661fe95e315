package pack_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp/pack"
	"github.com/dragoman-hub/dragoman/core"
)

// What the hub cannot check is checked by the server, which has written the schema.
func TestAToolIsOfferedWhateverOfItsSchemaTheHubCannotCheck(t *testing.T) {
	const email = `^(?!\\.)(?!.*\\.\\.)([A-Za-z0-9_'+\\-\\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\\-]*\\.)+[A-Za-z]{2,}$` // z.email()
	schemas := []string{
		`{"type":"object","properties":{"a":{"type":"string","pattern":"` + email + `"}},"required":["a"]}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^(.)\\1$"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","pattern":"^\\p{Script=Greek}+$"}}}`,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":null}`,
		`{"type":"object","properties":{"a":{"type":"string","description":null,"enum":null}}}`,
		`{"$schema":"https://example.com/our/dialect","type":"object","properties":{"a":{"type":"text"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`,
		`{"type":"object","properties":{"a":{"$ref":"#/components/a"}}}`,
		`{"type":"object","properties":{"a":{"type":"string","exclusiveMinimum":true,"required":true}}}`,
		`{"type":"object","properties":{"a":{"type":"any"},"b":{"items":[{"type":"string"}]}}}`,
	}
	var tools []string
	for i, schema := range schemas {
		tools = append(tools, fmt.Sprintf(`{"name":"x%d","inputSchema":%s}`, i, schema))
	}
	scripted(t, pack.Options{}, func(s *script) { s.begin(`{"tools":[` + strings.Join(tools, ",") + `]}`) }, func(g *testHub, s *script, _ *running) {
		offered := g.caller.Tools()[len(g.hub.Tools()):]
		if len(offered) != len(schemas) {
			t.Fatalf("got the tools %q, want all %d", g.tools(), len(schemas))
		}
		for i, d := range offered {
			if string(d.InputSchema) != schemas[i] {
				t.Errorf("got the schema %s, want it as it was sent: %s", d.InputSchema, schemas[i])
			}
			got := g.start(fmt.Sprintf("x%d", i), `{"a":"x"}`)
			m := s.wants("tools/call")
			if string(m.Params.Arguments) != `{"a":"x"}` {
				t.Errorf("%s: got the arguments %s, want them for the server to check", schemas[i], m.Params.Arguments)
			}
			s.write(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32602,"message":"the server has checked"}}`, m.ID)
			wantFault(t, schemas[i], <-got, core.CodeInvalid, "the server has checked")
			g.wantFault(fmt.Sprintf("x%d", i), `7`, core.CodeInvalid) // a call has an object
		}
		g.wantFault("x0", `{}`, core.CodeInvalid, "a: missing") // which the hub can check
	})
}
