package credentials

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// maxFileBytes bounds a file.
const maxFileBytes = 16 << 20

// file is a YAML file that a setting names. It is read strictly, and collects the mistakes.
type file struct {
	setting, path string
	mistakes      []error
}

// failAt notes a mistake in a line.
func (f *file) failAt(line int, format string, args ...any) {
	f.mistakes = append(f.mistakes, fmt.Errorf("%s: %s, line %d: %w", f.setting, f.path, max(1, line), fmt.Errorf(format, args...)))
}

// fail notes a mistake at a node.
func (f *file) fail(n *yaml.Node, format string, args ...any) { f.failAt(n.Line, format, args...) }

// read returns the root of the file. want says what the file has to contain.
func (f *file) read(want string) (*yaml.Node, error) {
	data, err := readAtMost(f.path, maxFileBytes, yamlFile)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", f.setting, f.path, err)
	}
	root, err := config.ParseYAML(data)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %s is not YAML: %w", f.setting, f.path, err)
	case root == nil:
		return nil, fmt.Errorf("%s: %s is empty: %s", f.setting, f.path, want)
	}
	return root, nil
}

// readSecrets reads a file with secrets, which no error quotes. Without a path it is empty.
func (f *file) readSecrets() (d config.Document, err error) {
	if f.path == "" {
		return d, nil
	}
	data, err := readAtMost(f.path, maxFileBytes, yamlFile)
	if err != nil {
		return d, fmt.Errorf("%s: %s: %w", f.setting, f.path, err)
	}
	if d, err = config.ReadYAML(data); err != nil {
		return d, fmt.Errorf("%s: %s is not YAML%s", f.setting, f.path, config.Unquoted(err))
	}
	return d, nil
}

// yamlFile is the kind of most files.
const yamlFile = "a YAML file"

// readAtMost reads a file of limited size. kind is what the file has to be.
func readAtMost(path string, limit int64, kind string) ([]byte, error) {
	advice := "name " + kind + " that the hub may read"
	in, err := os.Open(path)
	var data []byte
	if err == nil {
		defer in.Close()
		data, err = io.ReadAll(io.LimitReader(in, limit+1))
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w; %s", config.Bare(err), advice)
	case int64(len(data)) > limit:
		return nil, fmt.Errorf("it has more than %d bytes: %s", limit, advice)
	}
	if data, err = edge.Text(data); err != nil {
		return nil, fmt.Errorf("%w; %s", err, advice)
	}
	return data, nil
}

// fields returns the values of a map by key. It notes keys that are unknown or doubled. nil
// says that the node is no map, which is noted as well; what says what the node describes.
func (f *file) fields(n *yaml.Node, what string, known ...string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		f.fail(n, "%s is %s: write %s below it", what, kindOf(n), listed(known))
		return nil
	}
	all := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := key.Value
		_, twice := all[name]
		switch near := suggest.Nearest(name, known); {
		case key.Kind != yaml.ScalarNode:
			f.fail(key, "a key is %s: write one of %s", kindOf(key), listed(known))
		case twice:
			f.fail(key, "%s stands there twice: remove one", name)
		case slices.Contains(known, name):
			all[name] = value
		case near != "":
			f.fail(key, "unknown key %q: did you mean %s?", name, near)
		default:
			f.fail(key, "unknown key %q: write one of %s", name, listed(known))
		}
	}
	return all
}

// texts returns one text, or the texts of a list, each with its node. It notes what else the
// node is; what is the name of the key, and example what to write.
func (f *file) texts(n *yaml.Node, what, example string) (all []*yaml.Node) {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	if len(items) == 0 {
		f.fail(n, "%s: the list is empty: write %s", what, example)
	}
	for _, item := range items {
		switch {
		case item.Kind != yaml.ScalarNode:
			f.fail(item, "%s: it is %s: write %s", what, kindOf(item), example)
		case item.ShortTag() == "!!null":
			f.fail(item, "%s: it is empty: write %s", what, example)
		case item.ShortTag() != "!!str":
			f.fail(item, "%s: %s is %s: write it in quotes, or write %s", what, item.Value, kindOf(item), example)
		default:
			all = append(all, item)
		}
	}
	return all
}

// flag returns a value that is true or false; it notes anything else.
func (f *file) flag(n *yaml.Node, what string) bool {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
		f.fail(n, "%s: want true or false", what)
	}
	return strings.EqualFold(n.Value, "true")
}

// kindOf names what a node is.
func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a map"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*" + n.Value + "), which is not read here"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return "a text"
	case "!!bool":
		return "true or false"
	case "!!int", "!!float":
		return "a number"
	case "!!timestamp":
		return "a time"
	}
	return "of the type " + n.ShortTag()
}

func listed(names []string) string {
	if len(names) < 2 {
		return strings.Join(names, "")
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " and " + names[last]
}
