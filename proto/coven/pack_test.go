package coven_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/proto/coven"
)

// packWire is the side of packs, in the notation of wire.
var packWire = map[string]string{
	"PackManifest":        "1 pack_id string; 2 version string; 3 tools ToolDefinition[]",
	"ExecuteToolRequest":  "1 tool_name string; 2 input_json string; 3 request_id string",
	"ExecuteToolResponse": "1 request_id string; 2 output_json string@result; 3 error string@result",
}

func TestTheWireIsTheOneExistingPacksSpeak(t *testing.T) {
	file := coven.File_coven_pack_proto
	got := make(map[string]string)
	for i := range file.Messages().Len() {
		m := file.Messages().Get(i)
		got[string(m.Name())] = fields(m)
	}
	if diff := cmp.Diff(packWire, got); diff != "" {
		t.Errorf("pack.proto differs from the wire (-want +got); put pack.proto right, peers cannot follow:\n%s", diff)
	}
	names := []string{coven.PackService_Register_FullMethodName, coven.PackService_ToolResult_FullMethodName}
	if diff := cmp.Diff([]string{"/coven.PackService/Register", "/coven.PackService/ToolResult"}, names); diff != "" {
		t.Errorf("the methods differ from the wire (-want +got):\n%s", diff)
	}
	stream := coven.PackService_ServiceDesc.Streams[0]
	if stream.ClientStreams || !stream.ServerStreams {
		t.Errorf("Register streams: client %t, server %t; want its answer alone to", stream.ClientStreams, stream.ServerStreams)
	}
}
