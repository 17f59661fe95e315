package schemas

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

//go:embed parallax/*.json parallax/common/*.json acp/*.json acp/common/*.json acp/samples/*.json
//go:embed native/*.json native/common/*.json native/events/*.json native/commands/*.json
//go:embed a2a/*.json a2a/common/*.json a2a/results/*.json
//go:embed editor/*.json editor/common/*.json editor/results/*.json
//go:embed pi-rpc/*.json pi-rpc/common/*.json pi-rpc/results/*.json
var files embed.FS

// Schema is the schema of one type of message. It is safe for concurrent use.
type Schema struct {
	file    string // within files
	compile func() compiled
}

// compiled is a schema ready for use: as a node, or as the library's schema if nodes lack a
// keyword.
type compiled struct {
	check   *node
	library *jsonschema.Schema
}

func newSchema(file string) *Schema {
	return &Schema{file: file, compile: sync.OnceValue(func() compiled {
		library := compile(file)
		check, err := newNode(library, 0)
		if err != nil {
			return compiled{nil, library}
		}
		check.what = "" // a description of the type of message, not of what to send
		return compiled{check, library}
	})}
}

var (
	parallaxSchemas = sync.OnceValue(func() map[string]*Schema { return schemasIn("parallax") })
	acpSchemas      = sync.OnceValue(func() map[string]*Schema { return schemasIn("acp") })
	acpEnvelope     = sync.OnceValue(func() *Schema { return newSchema("acp/common/envelope.json") })
)

// Parallax returns the schema of a type of Parallax message, such as "task_result", or nil if
// the type is unknown.
func Parallax(messageType string) *Schema { return parallaxSchemas()[messageType] }

// ACP returns the schema of a kind of ACP envelope with its payload, such as "query", or nil
// if the kind is unknown.
func ACP(kind string) *Schema { return acpSchemas()[kind] }

// ACPEnvelope returns the schema of every ACP envelope, for kinds that the hub does not know.
func ACPEnvelope() *Schema { return acpEnvelope() }

var (
	nativeSchemas  = sync.OnceValue(func() map[string]*Schema { return schemasIn("native") })
	nativeEvents   = sync.OnceValue(func() map[string]*Schema { return schemasIn("native/events") })
	nativeCommands = sync.OnceValue(func() map[string]*Schema { return schemasIn("native/commands") })
)

// Native returns the schema of a kind of native frame, such as "event", or nil if the kind is
// unknown.
func Native(kind string) *Schema { return nativeSchemas()[kind] }

// NativeEvent returns the schema of the body of a kind of event, such as "text", and
// NativeCommand that of the command of an act, such as "open"; nil if it is unknown.
func NativeEvent(kind string) *Schema { return nativeEvents()[kind] }

// NativeCommand is described at [NativeEvent].
func NativeCommand(act string) *Schema { return nativeCommands()[act] }

var (
	editorSchemas = sync.OnceValue(func() map[string]*Schema { return schemasIn("editor") })
	editorResults = sync.OnceValue(func() map[string]*Schema { return schemasIn("editor/results") })
)

// Editor returns the schema of the messages of a method of the editor's protocol, such as
// "session/update", and EditorResult that of its result; nil if the method is unknown or has no
// result.
func Editor(method string) *Schema { return editorSchemas()[editorFile(method)] }

// EditorResult is described at [Editor].
func EditorResult(method string) *Schema { return editorResults()[editorFile(method)] }

// editorFile returns the name of the file of a method.
func editorFile(method string) string {
	return strings.ReplaceAll(strings.TrimPrefix(method, "$/"), "/", "_")
}

var (
	a2aSchemas = sync.OnceValue(func() map[string]*Schema { return schemasIn("a2a") })
	a2aResults = sync.OnceValue(func() map[string]*Schema { return schemasIn("a2a/results") })
)

// A2A returns the schema of the requests of a method of A2A in JSON-RPC, such as "SendMessage",
// and A2AResult that of its result, or of an item of its stream; nil if the method is unknown or
// has no result.
func A2A(method string) *Schema { return a2aSchemas()[method] }

// A2AResult is described at [A2A].
func A2AResult(method string) *Schema { return a2aResults()[method] }

var (
	piRPCSchemas = sync.OnceValue(func() map[string]*Schema { return schemasIn("pi-rpc") })
	piRPCResults = sync.OnceValue(func() map[string]*Schema { return schemasIn("pi-rpc/results") })
)

// PiRPC returns the schema of a type of line of pi's RPC mode, such as "prompt" or
// "message_update", in every version, and PiRPCResult that of the data in the response to a
// command; nil if the type is unknown or has no data.
func PiRPC(lineType string) *Schema { return piRPCSchemas()[lineType] }

// PiRPCResult is described at [PiRPC].
func PiRPCResult(command string) *Schema { return piRPCResults()[command] }

// schemasIn returns the schemas in a directory by the names of their files.
func schemasIn(dir string) map[string]*Schema {
	entries, err := fs.ReadDir(files, dir)
	if err != nil {
		panic(fmt.Sprintf("schemas: the directory %s is not in the program: %v", dir, err))
	}
	all := make(map[string]*Schema, len(entries))
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
			all[name] = newSchema(path.Join(dir, e.Name()))
		}
	}
	return all
}

// base turns the name of a file into a URL for the library.
const base = "embedded:///"

// compiler is the library's compiler, shared so that common parts are read once. It is not
// safe for concurrent use.
var (
	compilerMu sync.Mutex
	compiler   = sync.OnceValue(newCompiler)
)

func newCompiler() *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.ExtractAnnotations = true
	c.LoadURL = openEmbedded
	return c
}

// openEmbedded opens only files that are embedded in the program.
func openEmbedded(url string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(url, base)
	if !ok {
		return nil, fmt.Errorf("read %s: only embedded schemas are read", url)
	}
	return files.Open(name)
}

// compile reads a schema and all its references. It panics if a file is not a schema: the
// files are part of the program, and a test compiles all of them.
func compile(file string) *jsonschema.Schema {
	compilerMu.Lock()
	defer compilerMu.Unlock()
	s, err := compiler().Compile(base + file)
	if err != nil {
		panic(fmt.Sprintf("schemas: %s: %v", file, err))
	}
	return s
}

// Check checks a message against the schema. It returns nil or the first [*Violation] in the
// order of the message. Numbers are compared as float64.
func (s *Schema) Check(message strictjson.Value) error {
	c := s.compile()
	if c.check == nil {
		return validateByLibrary(c.library, message.Raw())
	}
	if v := c.check.check(message); v != nil {
		return v
	}
	return nil
}

// Validate is [Schema.Check] for a text. A text that strictjson refuses is a [*Violation]
// too.
func (s *Schema) Validate(data []byte) error {
	message, err := strictjson.Parse(data, strictjson.Limits{Bytes: max(1, len(data)), Depth: math.MaxInt})
	if err == nil {
		return s.Check(message)
	}
	if _, plain := decode(data); plain != nil {
		err = plain
	}
	return &Violation{Problem: err.Error()}
}

// validateByLibrary decodes data and checks it by the library.
func validateByLibrary(s *jsonschema.Schema, data []byte) error {
	value, err := decode(data)
	if err != nil {
		return &Violation{Problem: err.Error()}
	}
	err = s.Validate(value)
	if err == nil {
		return nil
	}
	var leaf *jsonschema.ValidationError
	if !errors.As(err, &leaf) {
		return &Violation{Problem: err.Error()}
	}
	for len(leaf.Causes) > 0 {
		leaf = leaf.Causes[0]
	}
	return &Violation{Path: dotted(leaf.InstanceLocation), Problem: leaf.Message}
}

// dotted returns a JSON pointer as a path.
func dotted(pointer string) string {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, s := range steps {
		steps[i] = unescape.Replace(s)
	}
	return strings.Join(steps, ".")
}
