package coven_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/schemas"
)

// FuzzManifest registers any manifest. The tools of one that is admitted can be listed and
// called, and are gone with the pack.
func FuzzManifest(f *testing.F) {
	for _, m := range []*pb.PackManifest{
		{},
		{PackId: "p", Tools: []*pb.ToolDefinition{{Name: "x", InputSchemaJson: `{"properties":{"a":{"type":"string"}}}`, TimeoutSeconds: -1}}},
		{PackId: "p", Tools: []*pb.ToolDefinition{{Name: "x", RequiredCapabilities: []string{"", "a"}}, {Name: "x"}}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, []byte(`{"a":1}`))
	}
	h := newHub(f, hub.Options{Schema: schemas.Compile})
	f.Fuzz(func(t *testing.T, manifest, input []byte) {
		m := new(pb.PackManifest)
		if proto.Unmarshal(manifest, m) != nil {
			return
		}
		var able []string
		for _, d := range m.GetTools() {
			able = append(able, d.GetRequiredCapabilities()...)
		}
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}})
		defer s.Close(nil)
		if err := s.Join(core.Card{ID: "a", Capabilities: able}, hub.JoinOptions{}); err != nil {
			t.Fatal(err)
		}
		admitted := false
		reason := coven.ServePack(context.Background(), h, m, func() (coven.PackConn, error) {
			admitted = true
			offered := s.Tools()[len(h.Tools()):]
			if len(offered) != len(m.GetTools()) {
				t.Errorf("got %d tools, want all %d that were admitted", len(offered), len(m.GetTools()))
			}
			for _, tool := range offered {
				var schema struct{ Type string }
				if err := json.Unmarshal(tool.InputSchema, &schema); err != nil || schema.Type != "object" || tool.Timeout <= 0 {
					t.Errorf("got %+v, want a schema of objects and a timeout", tool)
				}
				s.CallTool("c", tool.Name, input)
			}
			return nil, errors.New("no connection")
		}, coven.Options{})
		if !admitted && reason.Code == 0 {
			t.Errorf("got %v, want a status for a manifest that is not admitted", &reason)
		}
		if got := len(s.Tools()); got != len(h.Tools()) {
			t.Errorf("got %d tools, want the hub's own once the pack has left", got)
		}
	})
}
