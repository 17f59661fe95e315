package schemas

import (
	"embed"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

//go:embed parallax/*.json parallax/common/*.json acp/*.json acp/common/*.json acp/samples/*.json
var files embed.FS

// linked are the schemas that the program checks messages against.
var (
	linked          = set{files: &files}
	parallaxSchemas = folder{set: &linked, dir: "parallax"}
	acpSchemas      = folder{set: &linked, dir: "acp"}
	acpParts        = folder{set: &linked, dir: "acp/common"}
)

// set compiles schemas from the files of some dialects. It is safe for concurrent use.
type set struct {
	files *embed.FS
	mu    sync.Mutex
	// compiler is shared so that common parts are read once. It is not safe for concurrent use.
	compiler *jsonschema.Compiler
}

// folder is the schemas in a directory of a set, by the names of their files.
type folder struct {
	set   *set
	dir   string
	read  sync.Once
	named map[string]*Schema
}

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

func (s *set) newSchema(file string) *Schema {
	return &Schema{file: file, compile: sync.OnceValue(func() compiled {
		library := s.compile(file)
		check, err := newNode(library, 0)
		if err != nil {
			return compiled{nil, library}
		}
		check.what = "" // a description of the type of message, not of what to send
		return compiled{check, library}
	})}
}

// Parallax returns the schema of a type of Parallax message, such as "task_result", or nil if
// the type is unknown.
func Parallax(messageType string) *Schema { return parallaxSchemas.schema(messageType) }

// ACP returns the schema of a kind of ACP envelope with its payload, such as "query", or nil
// if the kind is unknown.
func ACP(kind string) *Schema { return acpSchemas.schema(kind) }

// ACPEnvelope returns the schema of every ACP envelope, for kinds that the hub does not know.
func ACPEnvelope() *Schema { return acpParts.schema("envelope") }

// schema returns the schema of a name, or nil.
func (f *folder) schema(name string) *Schema {
	f.read.Do(func() {
		entries, err := f.set.files.ReadDir(f.dir)
		if err != nil {
			panic(fmt.Sprintf("schemas: the directory %s is not in the program: %v", f.dir, err))
		}
		f.named = make(map[string]*Schema, len(entries))
		for _, e := range entries {
			if name, ok := strings.CutSuffix(e.Name(), ".json"); ok {
				f.named[name] = f.set.newSchema(path.Join(f.dir, e.Name()))
			}
		}
	})
	return f.named[name]
}

// base turns the name of a file into a URL for the library.
const base = "embedded:///"

func newCompiler(open func(url string) (io.ReadCloser, error)) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.Draft = jsonschema.Draft2020
	c.ExtractAnnotations = true
	c.LoadURL = open
	return c
}

// open opens only files that are embedded in the program.
func (s *set) open(url string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(url, base)
	if !ok {
		return nil, fmt.Errorf("read %s: only embedded schemas are read", url)
	}
	return s.files.Open(name)
}

// compile reads a schema and all its references. It panics if a file is not a schema: the
// files are part of the program, and a test compiles all of them.
func (s *set) compile(file string) *jsonschema.Schema {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compiler == nil {
		s.compiler = newCompiler(s.open)
	}
	compiled, err := s.compiler.Compile(base + file)
	if err != nil {
		panic(fmt.Sprintf("schemas: %s: %v", file, err))
	}
	return compiled
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
