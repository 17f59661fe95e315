package schemas

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

//go:embed native/*.json native/common/*.json native/events/*.json native/commands/*.json
//go:embed a2a/*.json a2a/common/*.json a2a/results/*.json
//go:embed editor/schema.json
//go:embed pi-rpc/*.json pi-rpc/common/*.json pi-rpc/results/*.json
var unlinkedFiles embed.FS

// unlinked are the schemas of dialects whose codecs check what they decode: only tests hold messages
// against them. Nothing that runs when the program starts may name it, so that the linker leaves the files
// out of the program.
var (
	unlinked       = set{files: &unlinkedFiles}
	nativeSchemas  = folder{set: &unlinked, dir: "native"}
	nativeEvents   = folder{set: &unlinked, dir: "native/events"}
	nativeCommands = folder{set: &unlinked, dir: "native/commands"}
	editorProtocol = published{set: &unlinked, file: "editor/schema.json"}
	a2aSchemas     = folder{set: &unlinked, dir: "a2a"}
	a2aResults     = folder{set: &unlinked, dir: "a2a/results"}
	piRPCSchemas   = folder{set: &unlinked, dir: "pi-rpc"}
	piRPCResults   = folder{set: &unlinked, dir: "pi-rpc/results"}
)

// Native returns the schema of a kind of native frame, such as "event", or nil if the kind is
// unknown.
func Native(kind string) *Schema { return nativeSchemas.schema(kind) }

// NativeEvent returns the schema of the body of a kind of event, such as "text", and
// NativeCommand that of the command of an act, such as "open"; nil if it is unknown.
func NativeEvent(kind string) *Schema { return nativeEvents.schema(kind) }

// NativeCommand is described at [NativeEvent].
func NativeCommand(act string) *Schema { return nativeCommands.schema(act) }

// Editor returns the schema of the params of a method of the editor's protocol, such as
// "session/update", and EditorResult that of its result; nil if the method is unknown or has no
// result.
func Editor(method string) *Schema { return editorProtocol.of(method).params }

// EditorResult is described at [Editor].
func EditorResult(method string) *Schema { return editorProtocol.of(method).result }

// published is the schema of a whole protocol as its project publishes it, in one file. A definition
// in it says of which method it is the params, or by its name the result.
type published struct {
	set     *set
	file    string
	read    sync.Once
	methods map[string]exchange
}

type exchange struct{ params, result *Schema }

// of returns the schemas of a method.
func (p *published) of(method string) exchange {
	p.read.Do(func() {
		text, err := p.set.files.ReadFile(p.file)
		if err != nil {
			panic(fmt.Sprintf("schemas: %v", err))
		}
		p.methods = map[string]exchange{}
		for key, def := range strictjson.ParseValid(text).Get("$defs").Members() {
			name := string(key)
			method, _ := def.Get("x-method").Text()
			known, schema := p.methods[method], p.set.newSchema(p.file+"#/$defs/"+name)
			if strings.HasSuffix(name, "Response") {
				known.result = schema
			} else {
				known.params = schema
			}
			p.methods[method] = known
		}
		delete(p.methods, "") // parts of others
	})
	return p.methods[method]
}

// A2A returns the schema of the requests of a method of A2A in JSON-RPC, such as "SendMessage",
// and A2AResult that of its result, or of an item of its stream; nil if the method is unknown or
// has no result.
func A2A(method string) *Schema { return a2aSchemas.schema(method) }

// A2AResult is described at [A2A].
func A2AResult(method string) *Schema { return a2aResults.schema(method) }

// PiRPC returns the schema of a type of line of pi's RPC mode, such as "prompt" or
// "message_update", in every version, and PiRPCResult that of the data in the response to a
// command; nil if the type is unknown or has no data.
func PiRPC(lineType string) *Schema { return piRPCSchemas.schema(lineType) }

// PiRPCResult is described at [PiRPC].
func PiRPCResult(command string) *Schema { return piRPCResults.schema(command) }
