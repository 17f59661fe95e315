package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/install"
)

// grpcClient is an implementation of gRPC that shares nothing with that of the hub.
const grpcClient = "@grpc/grpc-js@1.14.7"

// grpcWants has what testdata/grpc.mjs prints of each call: the status, with the first bytes of the
// answer; with a status of HTTP before where the request is not quite gRPC. "or" is between two
// that are right.
var grpcWants = map[string]string{
	"the health of the hub":                     "OK 0801",
	"the health of a service":                   "OK 0801",
	"the health of a service that is not there": "NOT_FOUND",
	"a request of health over its limit":        "RESOURCE_EXHAUSTED",
	"watching, until the client cancels":        "state 1 CANCELLED",
	"watching, until the deadline":              "state 1 DEADLINE_EXCEEDED or state 1 CANCELLED", // grpc-go resets the stream, perhaps before the client looks at its own clock
	"a deadline that has passed":                "DEADLINE_EXCEEDED",
	"a call that is cancelled at once":          "CANCELLED",
	"reflection":                                "3 services OK",
	"reflection of an older version":            "3 services OK",
	"an unknown service":                        "UNIMPLEMENTED",
	"an unknown method":                         "UNIMPLEMENTED",
	"an unknown method of a stream":             "UNIMPLEMENTED",
	"a path without a method":                   "UNIMPLEMENTED",
	"a list":                                    "OK ",
	"a request that is no protobuf":             "INTERNAL",
	"a message over the limit":                  "RESOURCE_EXHAUSTED",
	"a call after that":                         "OK 0801",
	"a compressed message":                      "UNIMPLEMENTED",
	"metadata of text and bytes":                "OK 0801",
	"metadata over the limit":                   "INTERNAL", // a reset with FRAME_SIZE_ERROR
	"300 calls at once":                         "OK 0801",
	"another content type":                      "415 INVALID_ARGUMENT",
	"no content type":                           "415 INVALID_ARGUMENT",
	"a content type with a codec":               "200 OK",
	"a GET":                                     "405 INTERNAL",
	"a timeout of a second":                     "200 OK",
	"a timeout without a unit":                  "400 INTERNAL",
	"an unknown compression":                    "200 UNIMPLEMENTED",
	"a message that is cut":                     "200 INTERNAL",
	"no message":                                "200 INTERNAL",
	"two messages":                              "200 INTERNAL",
}

func TestGRPC(t *testing.T) {
	t.Parallel()
	install.Needs(t, "npm", "node")
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/grpc.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "grpc.mjs"), script, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	install.Node(t, dir, grpcClient)
	h := startHub(t)
	cmd := exec.CommandContext(t.Context(), "node", "grpc.mjs", h.grpc)
	cmd.Dir, cmd.Stderr = dir, t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("grpc.mjs: got %v and %q, want no error", err, out)
	}
	var got map[string]string
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatalf("grpc.mjs: got %q, want JSON: %v", out, err)
	}
	results := map[string]result{}
	for name, want := range grpcWants {
		results[name] = result{passed: slices.Contains(strings.Split(want, " or "), got[name]), why: fmt.Sprintf("got %q, want %q", got[name], want)}
	}
	for name := range got {
		if _, known := grpcWants[name]; !known {
			t.Errorf("%s: got a call that is not in the table", name)
		}
	}
	judge(t, "gRPC", results)
}
