package mcp_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/mcp"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// provider connects a pack with a tool.
func (g *testServer) provider(id, name string) *hub.Session {
	g.t.Helper()
	s := g.hub.Connect(hub.Identity{Principal: core.Principal{ID: id}, Dialect: "test"})
	g.t.Cleanup(func() { s.Close(nil) })
	if err := s.Provide(id, []tool.Definition{{Name: name}}); err != nil {
		g.t.Fatal(err)
	}
	return s
}

func TestACallOfAToolOfAPackThatStartsSaysSo(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	prod := g.provider("prod", "prod.delete_all")
	prod.Absent("dev", core.NewFault(core.CodeUnreachable, "pack dev is starting: call again soon"))
	o := g.post("", toolCall("1", "dev.delete_all", `{}`)).outcome()
	o.contains(t, true, "unreachable: pack dev is starting: call again soon")
	o = g.ask(modern("tools/call", canNothing, `"name":"dev.delete_all","arguments":{}`)).outcome()
	o.contains(t, true, "unreachable: pack dev is starting: call again soon")
}

func TestNoToolOfAnotherPackIsSuggested(t *testing.T) {
	t.Parallel()
	g := start(t, mcp.Options{})
	g.provider("prod", "prod.delete_all")
	g.provider("plain", "delete_files")
	for name, near := range map[string]string{
		"dev.delete_all": "", "pro.delete_all": "", "delete_all": "", "prod.agents_list": "", "agents_list.x": "",
		"prod.delete_al": "prod.delete_all", "delete_fils": "delete_files", "agent_list": "agents_list",
	} {
		a := g.post("", toolCall("1", name, `{}`))
		if near == "" {
			a.fails(http.StatusOK, -32602, `unknown tool "`+name+`": see tools/list`)
			continue
		}
		a.fails(http.StatusOK, -32602, "did you mean "+near+"?")
	}
	if tools := string(g.post("", `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).body); !strings.Contains(tools, "prod.delete_all") {
		t.Errorf("got %s, want the tool that was not suggested among them", tools)
	}
}
