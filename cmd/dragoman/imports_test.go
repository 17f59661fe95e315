package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// module is the path every package of this repository begins with.
const module = "github.com/dragoman-hub/dragoman"

// A row says what each package it covers may import beside the standard
// library and the rest of its own tree. Patterns are relative to the module;
// "x/..." is a tree, x and everything below it.
type row struct {
	from []string // the packages it covers
	own  []string // packages of this module
	lib  []string // other modules, or packages of them
}

// anything as the only entry of own or lib stands for no limit.
const anything = "*"

var (
	// leaves are small tools that know nothing of agents.
	leaves = []string{"core/dedup", "core/edge", "core/fifo", "core/jsonrpc", "core/lru", "core/memory", "core/procgroup", "core/strictjson", "core/suggest", "core/timer", "core/visible"}
	// engine is all of core but its test support.
	engine = append([]string{
		"core",
		"core/agent",
		"core/audit",
		"core/cluster",
		"core/frame",
		"core/hub",
		"core/journal",
		"core/link",
		"core/pack",
		"core/policy",
		"core/question",
		"core/quota",
		"core/recorder",
		"core/redact",
		"core/roster",
		"core/rpc",
		"core/task",
		"core/thread",
		"core/tool",
		"core/topic",
		"core/trace",
		"core/usage",
	}, leaves...)
	// session is what a dialect needs of the engine.
	session = append([]string{
		"core", "core/agent", "core/frame", "core/host", "core/hub", "core/link", "core/pack", "core/question", "core/roster", "core/rpc", "core/task", "core/tool", "core/topic", "core/webhook",
	}, leaves...)
	// testing libraries, for tests and for what only tests import.
	proving = []string{"github.com/google/go-cmp", "go.uber.org/goleak", "pgregory.net/rapid"}
)

// table is the architecture. It follows three rules: a transport moves
// frames and knows no agents, a dialect turns frames into events and opens no
// socket, the core moves events and knows neither.
var table = []row{
	{from: []string{"core"}, own: []string{"core/strictjson"}, lib: []string{"github.com/google/uuid", "golang.org/x/text/unicode/norm"}},
	{from: leaves, own: leaves},
	{
		from: []string{
			"core/frame", "core/journal", "core/policy", "core/question", "core/roster",
			"core/thread", "core/tool", "core/topic", "core/usage", "core/webhook",
		},
		own: append([]string{"core"}, leaves...),
	},
	{from: []string{"core/rpc"}, own: append([]string{"core", "core/link"}, leaves...)},
	// What is different for a hub of a cluster. The engine knows it as hub.Remote alone.
	{
		from: []string{"core/cluster/remote"},
		own:  append([]string{"core", "core/cluster", "core/hub", "core/journal", "core/redact", "core/roster", "core/rpc", "core/task", "core/thread"}, leaves...),
	},
	{from: []string{"core/link"}, own: append([]string{"core", "core/frame"}, leaves...)},
	{from: []string{"core/audit"}, own: append([]string{"core", "core/journal", "core/policy"}, leaves...)},
	{from: []string{"core/cluster"}, own: append([]string{"core", "core/journal"}, leaves...)},
	{from: []string{"core/redact"}, own: append([]string{"core"}, leaves...)},
	{from: []string{"core/trace"}, own: append([]string{"core", "core/policy", "core/redact"}, leaves...)},
	{from: []string{"core/agent"}, own: append([]string{"core", "core/frame", "core/question"}, leaves...)},
	{from: []string{"core/host"}, own: engine},
	{from: []string{"core/pack"}, own: append([]string{"core", "core/tool"}, leaves...)},
	{from: []string{"core/task"}, own: append([]string{"core", "core/journal", "core/policy", "core/quota", "core/redact", "core/usage"}, leaves...)},
	{from: []string{"core/quota"}, own: append([]string{"core"}, leaves...), lib: []string{"golang.org/x/time/rate"}},
	{from: []string{"core/recorder"}, own: append([]string{"core", "core/journal", "core/policy", "core/quota", "core/redact", "core/task", "core/usage"}, leaves...)},
	{from: []string{"core/hub"}, own: engine},
	{from: []string{"core/coretest/..."}, own: append([]string{"core/host", "core/cluster/remote"}, engine...), lib: append([]string{"github.com/rogpeppe/go-internal", "google.golang.org/protobuf"}, proving...)},

	{
		from: []string{"transports/grpcserver/..."},
		own:  []string{"core", "core/link", "transports/connlimit"},
		lib:  []string{"google.golang.org/grpc", "google.golang.org/protobuf"},
	},
	{from: []string{"transports/ws/..."}, own: []string{"core", "core/link"}, lib: []string{"github.com/coder/websocket"}},
	{from: []string{"transports/stdio/..."}, own: []string{"core", "core/edge", "core/link", "core/procgroup"}, lib: []string{"golang.org/x/sys/unix"}}, // who is at the other end of a socket, on macOS
	{from: []string{"transports/bus/..."}, own: []string{"core/cluster", "core/link"}},
	{from: []string{"transports/web/..."}, own: []string{"core", "core/edge", "core/link", "core/memory", "transports/connlimit"}, lib: []string{"github.com/go-chi/chi/v5"}},
	{from: []string{"transports/connlimit"}},

	// What a connection presents becomes a principal here, for all dialects.
	{
		from: []string{"adapters/auth"},
		own:  append([]string{"core"}, leaves...),
		lib:  []string{"github.com/go-jose/go-jose/v4", "github.com/golang-jwt/jwt/v5", "golang.org/x/crypto/ssh"},
	},
	// The hub's own doors, and its memory.
	{from: []string{"adapters/rest/..."}, own: append([]string{"schemas"}, engine...), lib: []string{"github.com/go-chi/chi/v5"}},
	{from: []string{"adapters/console"}}, // files alone: the page calls REST
	{
		from: []string{"adapters/nats/..."},
		own:  append([]string{"core", "core/cluster", "core/journal", "core/roster", "core/usage"}, leaves...),
		lib:  []string{"github.com/nats-io"},
	},

	// What hubs of a cluster say to each other. Its tests run whole hubs over the bus.
	{from: []string{"adapters/peer"}, own: append([]string{"core/cluster", "core/cluster/remote", "core/journal", "transports/bus"}, session...)},

	// What the hub exports of its tasks.
	{
		from: []string{"adapters/otlp"},
		own:  append([]string{"core", "core/policy", "core/trace"}, leaves...),
		lib:  []string{"go.opentelemetry.io"},
	},

	// What the hub tells people elsewhere.
	{from: []string{"adapters/notify"}, own: append([]string{"core/redact"}, session...)},

	// The codecs that have a package of their own.
	codec("a2a"),
	codec("acp"),
	codec("mcp"),
	codec("native"),
	codec("editor"),
	codec("parallax", "github.com/gowebpki/jcs"),
	codec("pirpc"),
	{
		from: []string{"adapters/coven/wire"},
		own:  append([]string{"core", "core/link", "core/tool", "proto/coven/..."}, leaves...), // reasons to end a stream, and tools
		lib:  []string{"google.golang.org/grpc/codes", "google.golang.org/protobuf"},
	},
	{
		from: []string{"adapters/parallax/gateway"},
		own:  append([]string{"core", "adapters/parallax/wire", "proto/parallax/...", "schemas"}, leaves...),
		lib:  []string{"google.golang.org/protobuf"},
	},

	// What the program uses to be an agent or a client of a dialect. It knows no hub.
	clientEnd("a2a"),
	clientEnd("acp"),
	clientEnd("editor"),
	clientEnd("coven", "google.golang.org/grpc/codes", "google.golang.org/protobuf"),
	clientEnd("native"),
	clientEnd("parallax"),

	// The dialects: dialect gives every adapter not named above its row.
	dialect("a2a", "github.com/go-jose/go-jose/v4", "github.com/gowebpki/jcs", "google.golang.org/grpc", "google.golang.org/genproto/googleapis/rpc/errdetails", "google.golang.org/protobuf",
		"github.com/a2aproject/a2a-go/v2"), // in tests alone
	dialect("coven", "google.golang.org/grpc/codes", "google.golang.org/grpc/status", "google.golang.org/protobuf"),
	{
		from: []string{"adapters/metrics/..."}, own: append([]string{"core/quota"}, session...),
		lib: []string{"github.com/prometheus/client_golang"},
	},
	dialect("parallax", "github.com/go-chi/chi/v5", "golang.org/x/time/rate", "google.golang.org/grpc", "google.golang.org/protobuf"),
	// What the hub lists is the native dialect's business too.
	{from: []string{"adapters/native/..."}, own: append([]string{"core/usage", "schemas"}, session...)},
	// Calls of pi run up this list: a package knows those above it, as far as it says.
	{from: []string{"adapters/pi/shell", "adapters/pi/reaper", "adapters/pi/sessionfile"}, own: leaves},
	{from: []string{"adapters/pi/command"}, own: append([]string{"core"}, leaves...), lib: []string{"github.com/sony/gobreaker/v2"}},
	{from: []string{"adapters/pi/conversation"}, own: append([]string{"core", "adapters/pi/sessionfile"}, leaves...)},
	{from: []string{"adapters/pi/render"}, own: append([]string{"core", "core/question", "adapters/pi/sessionfile", "adapters/pi/conversation"}, leaves...)},
	{from: []string{"adapters/pi/pitest"}, own: append([]string{"core", "core/link", "adapters/pi/conversation"}, leaves...)},
	dialect("pi"),

	{from: []string{"schemas/..."}, own: leaves, lib: []string{"github.com/santhosh-tekuri/jsonschema/v5"}},
	{from: []string{"proto/..."}, lib: []string{"google.golang.org/grpc", "google.golang.org/protobuf"}},
	// The program. Calls run down this list: a package knows those above it.
	program("install", "core/coretest/tier"), // of programs of others, for tests
	program("config", "core", "core/hub", "core/journal", "core/usage"),
	program("client", "adapters/...", "core", "core/agent", "core/hub", "core/link", "core/question", "core/task", "core/usage", "proto/...", "transports/...", internal+"config"),
	program("agent", "adapters/...", "core", "core/frame", internal+"client", internal+"config"),
	program("preset", "core/...", internal+"config"),
	program("supervisor", "adapters/...", "core/...", "transports/...", internal+"agent", internal+"config", internal+"preset"),
	program("credentials", "adapters/auth", "core", "core/policy", internal+"config"),
	program("service", "adapters/...", "core", "core/...", "proto/...", "schemas", "transports/...",
		internal+"config", internal+"client", internal+"credentials", internal+"supervisor"),
	program("bridge", "adapters/...", "core", "core/agent", "core/link", "core/lru", "transports/...", internal+"agent", internal+"client"),
	program("demo", "adapters/...", "core", "core/link", internal+"client", internal+"service"),
	// The bench is a peer of the hub, and knows the clients of its dialects alone.
	{
		from: []string{"tools/bench"}, own: []string{"adapters/...", "core", "core/link", "proto/...", "transports/..."},
		lib: []string{"google.golang.org/grpc"},
	},
	{from: []string{"tools/path"}, own: []string{"proto/coven"}, lib: []string{"github.com/coder/websocket", "google.golang.org/grpc"}},
	{from: []string{"cmd/..."}, own: []string{anything}, lib: []string{anything}},
	// Examples show what somebody else writes, with the protocol alone.
	{from: []string{"docs/examples/..."}, own: []string{"proto/..."}, lib: []string{"google.golang.org/grpc"}},
}

// dialect is the row of a dialect that needs nothing beyond lib.
func dialect(name string, lib ...string) row {
	return row{
		from: []string{"adapters/" + name + "/..."},
		own:  append([]string{"proto/" + name + "/...", "schemas"}, session...),
		lib:  lib,
	}
}

// codec is the row of the codec of a dialect, which needs nothing beyond lib.
func codec(name string, lib ...string) row {
	return row{from: []string{"adapters/" + name + "/wire"}, own: append([]string{"core", "proto/" + name + "/...", "schemas"}, leaves...), lib: lib}
}

// clientEnd is the row of the client end of a dialect, which needs nothing beyond lib.
func clientEnd(name string, lib ...string) row {
	return row{
		from: []string{"adapters/" + name + "/client"},
		own: append([]string{
			"core", "core/agent", "core/frame", "core/link", "core/question", "adapters/" + name + "/wire", "proto/" + name + "/...", "schemas",
		}, leaves...),
		lib: lib,
	}
}

// internal has the packages of the program.
const internal = "cmd/dragoman/internal/"

// program is the row of a package of the program. What it imports of others is its own
// business.
func program(name string, own ...string) row {
	return row{from: []string{internal + name}, own: slices.Concat(own, leaves), lib: []string{"github.com", "go.opentelemetry.io", "go.yaml.in", "golang.org", "google.golang.org"}}
}

// rowOf returns the row of a package.
func rowOf(pkg string) (row, bool) {
	for _, r := range table {
		if covered(pkg, r.from) {
			return r, true
		}
	}
	if name, ok := strings.CutPrefix(pkg, "adapters/"); ok {
		name, _, _ = strings.Cut(name, "/")
		return dialect(name), true
	}
	return row{}, false
}

// refusal says why the package from may not import to, or nothing. Both are
// relative to the module if they belong to it. The import is a test's if inTest.
func refusal(from, to string, inTest bool) string {
	r, ok := rowOf(from)
	if !ok {
		return "no row of the table covers it: add one, or put the package where one does"
	}
	if inTest && !covered(from, []string{"core/..."}) {
		return refusalOfTest(from, to)
	}
	below := slices.DeleteFunc(slices.Clone(r.from), func(p string) bool { return !covered(from, []string{p}) })
	allowed := slices.Concat(r.own, r.lib, below)
	if inTest {
		allowed = slices.Concat(allowed, []string{"core/coretest/..."}, proving)
	}
	if slices.Contains(allowed, anything) || covered(to, allowed) || within(to, r.lib) || inTest && within(to, proving) {
		return ""
	}
	return fmt.Sprintf("want the standard library and [%s] only: move what is shared into core, pass it in as a value or an interface, or let the two meet in cmd",
		strings.Join(allowed, " "))
}

// adapterOf returns the adapter that a package below adapters belongs to.
func adapterOf(pkg string) string { return strings.Join(strings.SplitN(pkg, "/", 3)[:2], "/") }

// refusalOfTest is for tests outside core: they may import anything, except that a
// transport and a dialect, or two dialects, meet only in cmd.
func refusalOfTest(from, to string) string {
	transport, adapter := covered(from, []string{"transports/..."}), covered(from, []string{"adapters/..."})
	own, _ := rowOf(from)
	switch {
	case covered(to, own.from), covered(to, own.own), adapter && covered(to, []string{adapterOf(from) + "/..."}):
		return ""
	case adapter && covered(to, []string{"adapters/...", "transports/..."}),
		transport && covered(to, []string{"adapters/..."}):
		return "want a test of one package alone: move the test to cmd, where transports and dialects meet"
	}
	return ""
}

// covered reports whether one of the patterns covers the package.
func covered(pkg string, patterns []string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if tree, ok := strings.CutSuffix(pattern, "/..."); ok {
			return pkg == tree || strings.HasPrefix(pkg, tree+"/")
		}
		return pkg == pattern
	})
}

// within reports whether a package is one of the modules or stands in one.
func within(pkg string, modules []string) bool {
	return slices.ContainsFunc(modules, func(m string) bool {
		return pkg == m || strings.HasPrefix(pkg, m+"/")
	})
}

// listed is a package as go list prints it.
type listed struct {
	ImportPath   string
	Standard     bool
	Module       *struct{ Path string }
	Imports      []string
	TestImports  []string
	XTestImports []string
}

func TestRepositoryImportsFollowTheTable(t *testing.T) {
	packages := list(t)
	standard := make(map[string]bool)
	for _, p := range packages {
		standard[p.ImportPath] = p.Standard
	}
	var seen int
	for _, p := range packages {
		if p.Module == nil || p.Module.Path != module || variant(p.ImportPath) {
			continue
		}
		seen++
		from := relative(p.ImportPath)
		check := func(imports []string, inTest bool) {
			for _, path := range imports {
				if standard[path] || path == "C" {
					continue
				}
				if why := refusal(from, relative(path), inTest); why != "" {
					t.Errorf("%s imports %s (in a test: %t); %s", from, relative(path), inTest, why)
				}
			}
		}
		check(p.Imports, false)
		check(p.TestImports, true)
		check(p.XTestImports, true)
	}
	if seen == 0 {
		t.Fatalf("go list found no package of %s; want all of them", module)
	}
}

func TestRepositoryImportTableRefusesForbiddenImports(t *testing.T) {
	for _, tt := range []struct {
		from, to string
		inTest   bool
		allowed  bool
	}{
		{from: "core", to: "github.com/google/uuid", allowed: true},
		{from: "core", to: "core/hub"},
		{from: "core", to: "github.com/rs/zerolog"},
		{from: "core", to: "core/coretest"},
		{from: "core", to: "core/coretest", inTest: true, allowed: true},
		{from: "core", to: "pgregory.net/rapid", inTest: true, allowed: true},
		{from: "core", to: "adapters/acp", inTest: true},
		{from: "core/link", to: "core", allowed: true},
		{from: "core/link", to: "core/journal"},
		{from: "core/hub", to: "core/journal", allowed: true},
		{from: "core/hub", to: "core/coretest"},
		{from: "core/hub", to: "adapters/nats"},
		{from: "core/coretest", to: "core/hub", allowed: true},
		{from: "core/coretest", to: "pgregory.net/rapid", allowed: true},
		{from: "core/coretest", to: "transports/ws"},
		{from: "core/unheard", to: "core"},
		{from: "transports/ws", to: "github.com/coder/websocket", allowed: true},
		{from: "transports/ws", to: "core/link", allowed: true},
		{from: "transports/ws", to: "core/hub"},
		{from: "transports/ws", to: "adapters/parallax"},
		{from: "transports/ws", to: "adapters/parallax", inTest: true},
		{from: "transports/web", to: "transports/ws"},
		{from: "transports/grpcserver", to: "google.golang.org/grpc/health", allowed: true},
		{from: "transports/grpcserver", to: "google.golang.org/grpcx"},
		{from: "transports/grpcserver", to: "proto/coven"},
		{from: "adapters/coven", to: "proto/coven", allowed: true},
		{from: "adapters/coven", to: "google.golang.org/grpc/status", allowed: true},
		{from: "adapters/coven", to: "google.golang.org/grpc"},
		{from: "adapters/coven", to: "adapters/acp"},
		{from: "adapters/coven", to: "adapters/mcp"},
		{from: "adapters/mcp", to: "github.com/modelcontextprotocol/go-sdk/mcp"},
		{from: "adapters/coven", to: "adapters/acp", inTest: true},
		{from: "adapters/coven", to: "transports/grpcserver", inTest: true},
		{from: "adapters/coven", to: "core/coretest", inTest: true, allowed: true},
		{from: "adapters/acp", to: "proto/coven"},
		{from: "adapters/acp", to: "core/hub", allowed: true},
		{from: "adapters/acp", to: "core/journal"},
		{from: "adapters/acp", to: "schemas", allowed: true},
		{from: "adapters/acp/wire", to: "core", allowed: true},
		{from: "adapters/acp/wire", to: "core/hub"},
		{from: "adapters/acp/wire", to: "adapters/acp"},
		{from: "adapters/acp", to: "adapters/acp/wire", allowed: true},
		{from: "adapters/coven/wire", to: "core/link", allowed: true},
		{from: "adapters/coven/wire", to: "core/hub"},
		{from: "adapters/coven/wire", to: "adapters/coven"},
		{from: "adapters/coven", to: "adapters/coven/conversation", allowed: true},
		{from: "adapters/coven/client", to: "adapters/coven/wire", allowed: true},
		{from: "adapters/coven/client", to: "adapters/coven"},
		{from: "adapters/coven/client", to: "core/hub"},
		{from: "adapters/acp/client", to: "adapters/acp/wire", inTest: true, allowed: true},
		{from: "adapters/acp/client", to: "adapters/coven", inTest: true},
		{from: "adapters/coven", to: "adapters/coven/client", inTest: true, allowed: true},
		{from: "adapters/another", to: "core/hub", allowed: true},
		{from: "adapters/another", to: "github.com/coder/websocket"},
		{from: "adapters/rest", to: "core/thread", allowed: true},
		{from: "adapters/rest", to: "core/coretest"},
		{from: "adapters/nats", to: "github.com/nats-io/nats.go/jetstream", allowed: true},
		{from: "adapters/nats", to: "core/journal", allowed: true},
		{from: "adapters/nats", to: "core/hub"},
		{from: "schemas", to: "core"},
		{from: "proto/coven", to: "core"},
		{from: "cmd/dragoman", to: "adapters/acp", allowed: true},
		{from: "cmd/dragoman/internal/command", to: "cmd/dragoman/internal/service", allowed: true},
		{from: "cmd/dragoman/internal/service", to: "cmd/dragoman/internal/command"},
		{from: "cmd/dragoman/internal/config", to: "cmd/dragoman/internal/service"},
		{from: "cmd/dragoman/internal/config", to: "adapters/pi"},
		{from: "cmd/dragoman", to: "github.com/spf13/cobra", allowed: true},
		{from: "elsewhere", to: "core"},
	} {
		if got := refusal(tt.from, tt.to, tt.inTest) == ""; got != tt.allowed {
			t.Errorf("%s imports %s (in a test: %t): allowed = %t, want %t", tt.from, tt.to, tt.inTest, got, tt.allowed)
		}
	}
}

// list asks the go command for every package of the module, its tests and all
// they depend on. A package that does not compile is listed too.
func list(t *testing.T) []listed {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-test",
		"-json=ImportPath,Standard,Module,Imports,TestImports,XTestImports", "./...")
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	var all []listed
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatalf("reading the output of go list: %v", err)
		}
		all = append(all, p)
	}
}

// variant reports whether go list added the package for a test.
func variant(path string) bool {
	return strings.Contains(path, " ") || strings.HasSuffix(path, ".test")
}

// relative cuts the module off a path that begins with it.
func relative(path string) string {
	return strings.TrimPrefix(path, module+"/")
}
