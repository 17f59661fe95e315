package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	nativeclient "github.com/dragoman-hub/dragoman/adapters/native/client"
	"github.com/dragoman-hub/dragoman/adapters/native/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// mcpTool is a tool that the suite of MCP asks for by its name.
type mcpTool struct {
	schema string // of its input; "" for none
	output string // JSON
	fault  *core.Fault
}

// mcpTools are the tools that a pack of the test offers, in the form that the pack of an MCP
// server would give their results.
var mcpTools = map[string]mcpTool{
	"test_simple_text":            {output: `{"text":"This is a simple text response for testing."}`},
	"test_error_handling":         {fault: core.NewFault(core.CodeInternal, "This tool intentionally returns an error for testing")},
	"test_image_content":          {output: `{"files":[{"name":"image-1.png","media_type":"image/png","data":"iVBORw=="}]}`},
	"test_audio_content":          {output: `{"files":[{"name":"audio-1.wav","media_type":"audio/wav","data":"UklGRg=="}]}`},
	"test_embedded_resource":      {output: `{"files":[{"name":"note.txt","media_type":"text/plain","data":"aGVsbG8="}]}`},
	"test_multiple_content_types": {output: `{"text":"several","files":[{"name":"image-1.png","media_type":"image/png","data":"iVBORw=="},{"name":"note.txt","media_type":"text/plain","data":"aGVsbG8="}]}`},
	"test_logging_tool":           {output: `{"text":"nothing is logged"}`},
	triggerChange:                 {output: `{"text":"changed"}`},
	askPeople:                     {output: `{"text":"asked"}`},
	withProgress:                  {output: `{"text":"done"}`},
	"greet":                       {schema: `{"type":"object","properties":{"name":{"type":"string"}}}`, output: `{"text":"Hello"}`},
	"test_x_mcp_header":           {schema: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`, output: `{"text":"here"}`},
	"json_schema_2020_12_tool":    {schema: schema2020, output: `{"text":"valid"}`},
}

// The tools that do something.
const (
	triggerChange = "test_trigger_tool_change" // changes which tools there are
	askPeople     = "test_streaming_elicitation"
	withProgress  = "test_tool_with_progress"
)

// schema2020 is the input schema whose keywords have to arrive.
const schema2020 = `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",
	"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},
	"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},
		"phone":{"type":"string"},"email":{"type":"string"}},
	"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],
	"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},
	"additionalProperties":false}`

// offerTools connects a pack with the tools of the suite to a hub, until the test ends.
func offerTools(t *testing.T, h hub) {
	t.Helper()
	conn, err := ws.Dial(t.Context(), "ws://"+h.http+"/ws/native?agent_id=conformance", ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p := &mcpPack{test: t}
	ctx := context.Background() // the connection outlives the context of the test until its cleanup
	ready := make(chan struct{})
	p.client = nativeclient.New(ctx, conn, nativeclient.Options{
		Told: func(kind string, v strictjson.Value) {
			if kind != "execute" {
				return
			}
			<-ready
			id, _ := v.Get("id").Text()
			name, _ := v.Get("tool").Text()
			p.running.Go(func() { p.execute(ctx, id, name) })
		},
	})
	close(ready)
	t.Cleanup(func() {
		p.client.Close()
		p.running.Wait()
	})
	if err := p.provide(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// mcpPack is the pack of a test.
type mcpPack struct {
	test    *testing.T
	client  *nativeclient.Client
	running sync.WaitGroup
	changes atomic.Int64
}

// provide offers all tools, and one with another name after each change.
func (p *mcpPack) provide(ctx context.Context) error {
	with := wire.With{Tools: []wire.Tool{{Name: "changed_" + strconv.FormatInt(p.changes.Load(), 10), Description: "Comes and goes."}}}
	for name, tool := range mcpTools {
		with.Tools = append(with.Tools, wire.Tool{Name: name, Description: "A tool of the suite.", InputSchema: json.RawMessage(tool.schema)})
	}
	_, err := p.client.Call(ctx, core.Provide{Pack: "conformance"}, with)
	return err
}

func (p *mcpPack) execute(ctx context.Context, id, name string) {
	var err error
	switch name {
	case triggerChange:
		p.changes.Add(1)
		err = p.provide(ctx)
	case askPeople:
		// The caller works on no task, so the hub knows nobody to ask: the call goes on without.
		_, err = p.client.AskCaller(ctx, id, question.Question{Text: "Is this what you want?"})
		if core.AsFault(err).Code == core.CodeUnsupported {
			err = nil
		}
	case withProgress:
		for _, detail := range []string{"0/100", "50/100", "100/100"} {
			err = errors.Join(err, p.client.Send(ctx, "progress", map[string]string{"execution": id, "detail": detail}))
		}
	}
	if err != nil {
		p.test.Errorf("%s: got %v, want no error", name, err)
	}
	tool := mcpTools[name]
	if err := p.client.Answer(ctx, id, json.RawMessage(tool.output), tool.fault); err != nil {
		p.test.Errorf("answering %s: got %v, want no error", name, err)
	}
}
