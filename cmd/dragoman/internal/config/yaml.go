package config

import (
	"bytes"
	"errors"
	"io"

	"github.com/knadh/koanf/v2"
	"go.yaml.in/yaml/v3"
)

// OneDocument is a parser of YAML that refuses a file with several documents: only
// the first would be read.
type OneDocument struct{ koanf.Parser }

var ErrManyDocuments = errors.New("there are several documents in it, with --- between: write one")

// Unmarshal implements koanf.Parser.
func (p OneDocument) Unmarshal(data []byte) (map[string]any, error) {
	all, err := p.Parser.Unmarshal(data)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(data))
	if documents.Decode(&node) == nil && !errors.Is(documents.Decode(&node), io.EOF) {
		return nil, ErrManyDocuments
	}
	return all, nil
}
