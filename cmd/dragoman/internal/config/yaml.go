package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrManyDocuments means that a file has several documents, of which only the first would be
// read.
var ErrManyDocuments = errors.New("there are several documents in it, with --- between: write one")

// ReadYAML parses a map from YAML with at most one document. All keys become text. An error is [ErrManyDocuments], or
// one whose text [PlainYAML] makes plain; a *yaml.TypeError has several.
func ReadYAML(data []byte) (map[string]any, error) {
	var root, another yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if err := documents.Decode(&root); errors.Is(err, io.EOF) {
		return map[string]any{}, nil
	} else if err != nil {
		return nil, err
	}
	if err := documents.Decode(&another); err == nil {
		return nil, ErrManyDocuments
	} else if !errors.Is(err, io.EOF) {
		return nil, err
	}
	var nodes nodeCheck
	if nodes.check(&root, ""); len(nodes.wrong) > 0 {
		return nil, &yaml.TypeError{Errors: nodes.wrong}
	}
	var all any
	if err := root.Decode(&all); err != nil {
		return nil, err
	}
	switch m := withTextKeys(all).(type) {
	case nil:
		return map[string]any{}, nil
	case map[string]any:
		return m, nil
	default:
		return nil, fmt.Errorf("line 1: want names with their values, got %s", shown(m))
	}
}

// withTextKeys converts the keys of all maps in a value to text.
func withTextKeys(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			v[key] = withTextKeys(value)
		}
	case map[any]any:
		m := map[string]any{}
		for key, value := range v {
			m[fmt.Sprint(key)] = withTextKeys(value)
		}
		return m
	case []any:
		for i, value := range v {
			v[i] = withTextKeys(value)
		}
	}
	return v
}

// linesOf returns the lines in which the values of a YAML file begin, by their paths. What an
// alias stands for has none of its own.
func linesOf(data []byte) map[string]int {
	lines := map[string]int{}
	var root yaml.Node
	if yaml.Unmarshal(data, &root) == nil {
		addLines(lines, "", &root)
	}
	return lines
}

func addLines(lines map[string]int, path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.DocumentNode:
		for _, one := range n.Content {
			addLines(lines, path, one)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			below := n.Content[i].Value
			if path != "" {
				below = path + "." + below
			}
			lines[below] = n.Content[i].Line
			addLines(lines, below, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for i, one := range n.Content {
			below := fmt.Sprintf("%s[%d]", path, i)
			lines[below] = one.Line
			addLines(lines, below, one)
		}
	}
}

// unreadable adds what is wrong with a file that is not YAML, or not that of settings.
func (p *problems) unreadable(path string, data []byte, err error) {
	var several *yaml.TypeError
	texts := []string{err.Error()}
	if errors.As(err, &several) {
		texts = several.Errors
	}
	for _, text := range texts {
		m := yamlError.FindStringSubmatch(PlainYAML(text))
		at, text := Origin{name: path}, m[2]
		if n, _ := strconv.Atoi(m[1]); n > 0 { // what is not closed is found behind the last line
			at.name = fmt.Sprintf("%s:%d", path, min(n, 1+bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n"))))
		}
		if len(text) > 300 {
			text = strings.ToValidUTF8(text[:300], "") + "..."
		}
		p.add(at, "%s", text)
	}
}
