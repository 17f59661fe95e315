package conversation_test

import (
	"context"
	"slices"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestUnderRulesAnAdminIsWhoMayOperate(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{Authorizer: coretest.Rules(t, "ann operate", "bob see,ask,read")})
	var who string
	s := conversation.NewService(h, conversation.Options{Principal: func(context.Context) (core.Principal, error) {
		return core.Principal{ID: who, Authenticated: true}, nil
	}}, serve)
	for name, role := range map[string]string{"ann": "admin", "bob": "member"} {
		who = name
		if me, err := s.GetMe(t.Context(), nil); err != nil || !slices.Equal(me.GetRoles(), []string{role}) {
			t.Errorf("%s: got the roles %v and %v, want %s", name, me.GetRoles(), err, role)
		}
	}
}

func TestUnderRulesAToolIsApprovedByWhoMayDecide(t *testing.T) {
	h := coretest.NewHub(t, hub.Options{Authorizer: coretest.Rules(t, "* see,ask", "boss approve")})
	a := joinAgent(t, h, "guide")
	var who string
	s := conversation.NewService(h, conversation.Options{Principal: func(context.Context) (core.Principal, error) {
		return core.Principal{ID: who, Authenticated: true}, nil
	}}, serve)
	who = "ann"
	sendMessage(t, s, "guide", "go", "k")
	task := a.report(core.ApprovalRequested{ID: "t", Name: "rm", Input: "{}"})
	for _, c := range []struct {
		name string
		want bool
	}{{"ann", false}, {"eve", false}, {"boss", true}} {
		who = c.name
		r, err := s.ApproveTool(t.Context(), &pb.ApproveToolRequest{AgentId: "guide", ToolId: "t", Approved: true})
		if err != nil || r.GetSuccess() != c.want {
			t.Errorf("%s: got %v and %v, want it approved %v", c.name, r, err, c.want)
		}
	}
	if err := a.s.Report(task.ID(), core.Done{}, nil); err != nil {
		t.Fatal(err)
	}
}
