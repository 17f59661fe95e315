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
var files embed.FS

// Schema is the schema of one type of message. It may be used from any number of
// goroutines.
type Schema struct {
	file    string // within files
	compile func() compiled
}

// compiled is a schema ready for use: as a check, or as the library's own where
// the check lacks a keyword.
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

// Parallax returns the schema of a type of Parallax message, such as
// "task_result", or nil when there is no such type.
func Parallax(messageType string) *Schema { return parallaxSchemas()[messageType] }

// ACP returns the schema of a kind of ACP envelope, payload included, such as
// "query", or nil when there is no such kind.
func ACP(kind string) *Schema { return acpSchemas()[kind] }

// ACPEnvelope returns the schema that every ACP envelope obeys, of whatever
// kind: all that can be asked of a kind that the hub does not know.
func ACPEnvelope() *Schema { return acpEnvelope() }

// schemasIn returns the schemas of a directory by the name of their file.
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

// base makes a URL of a file's name, which the library wants.
const base = "embedded:///"

// compiler is the library's, shared so that what many schemas refer to is read
// once. It is no good for two goroutines at a time.
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

// openEmbedded reads from the files of the program and from nowhere else.
func openEmbedded(url string) (io.ReadCloser, error) {
	name, ok := strings.CutPrefix(url, base)
	if !ok {
		return nil, fmt.Errorf("read %s: only embedded schemas are read", url)
	}
	return files.Open(name)
}

// compile reads a schema and all that it refers to. It panics when a file is not
// a schema: the files are part of the program, and a test compiles them all.
func compile(file string) *jsonschema.Schema {
	compilerMu.Lock()
	defer compilerMu.Unlock()
	s, err := compiler().Compile(base + file)
	if err != nil {
		panic(fmt.Sprintf("schemas: %s: %v", file, err))
	}
	return s
}

// Check holds a message against the schema. It returns nil or a [*Violation],
// the first one in the order of the message. Numbers are judged as float64.
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

// Validate is [Schema.Check] for a text that nobody has read yet. What strictjson
// refuses at a depth of 10,000 is a [*Violation] too.
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

// validateByLibrary decodes data and leaves the verdict to the library.
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

// dotted turns a JSON pointer into a path.
func dotted(pointer string) string {
	steps := strings.Split(strings.TrimPrefix(pointer, "/"), "/")
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	for i, s := range steps {
		steps[i] = unescape.Replace(s)
	}
	return strings.Join(steps, ".")
}
