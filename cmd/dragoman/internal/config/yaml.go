package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// manyDocuments is wrong with a file that has several documents, of which only the first would be read.
const manyDocuments = "a second document begins here: write all in one, without ---"

// ParseYAML returns the root of the only document of a YAML file; nil if there is none. An error is a [YAMLError].
func ParseYAML(data []byte) (*yaml.Node, error) {
	documents := yaml.NewDecoder(bytes.NewReader(data))
	var one, another yaml.Node
	if err := documents.Decode(&one); errors.Is(err, io.EOF) {
		return nil, nil //nolint:nilnil // an empty file is no error
	} else if err != nil {
		return nil, plainYAML(err)
	}
	if err := documents.Decode(&another); err == nil {
		return nil, YAMLError{another.Line, manyDocuments}
	} else if !errors.Is(err, io.EOF) {
		return nil, plainYAML(err)
	}
	return one.Content[0], nil
}

// Document is what a YAML file says: a map, whose keys all are text.
type Document struct {
	Values map[string]any
	// Lines are those in which the values begin, by their paths: agents[2].env[0]. What an alias stands for has none
	// of its own.
	Lines map[string]int
}

// ReadYAML reads a YAML file with at most one document. The error joins a [YAMLError] for each mistake.
func ReadYAML(data []byte) (Document, error) {
	d, wrong := readYAML(data)
	var errs []error
	for _, one := range wrong {
		errs = append(errs, one)
	}
	return d, errors.Join(errs...)
}

func readYAML(data []byte) (d Document, wrong []YAMLError) {
	root, err := ParseYAML(data)
	nodes := nodeCheck{lines: map[string]int{}}
	if root != nil {
		nodes.check(root, "")
	}
	var value any
	if err == nil && root != nil && nodes.wrong == nil {
		err = root.Decode(&value)
	}
	if err != nil {
		return d, []YAMLError{plainYAML(err)}
	}
	all, is := value.(map[string]any)
	if !is && value != nil {
		nodes.wrong = []YAMLError{{1, "want names with their values, got " + shown(value)}}
	}
	return Document{all, nodes.lines}, nodes.wrong
}

// unreadable adds what is wrong with a file that is not YAML, or not that of settings.
func (p *problems) unreadable(path string, data []byte, wrong []YAMLError) {
	last := 1 + bytes.Count(bytes.TrimRight(data, "\n"), []byte("\n")) // what is not closed is found behind it
	for _, one := range wrong {
		at := Origin{name: path}
		if one.Line > 0 {
			at.name = fmt.Sprintf("%s:%d", path, min(one.Line, last))
		}
		p.add(at, "%s", cut(one.Text, 300))
	}
}
