package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// ErrManyDocuments means that a file has several documents, of which only the first would be
// read.
var ErrManyDocuments = errors.New("there are several documents in it, with --- between: write one")

// ReadYAML parses a map from YAML with at most one document. All keys become text.
func ReadYAML(data []byte) (map[string]any, error) {
	all := map[string]any{}
	if err := yaml.Unmarshal(data, &all); err != nil {
		return nil, err
	}
	var node yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if documents.Decode(&node) == nil && !errors.Is(documents.Decode(&node), io.EOF) {
		return nil, ErrManyDocuments
	}
	return withTextKeys(all).(map[string]any), nil
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
