package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Text returns a block of text.
func Text(text string) Block { return Block{Type: BlockText, Text: text} }

// Check returns an error that names the member that a block of its type lacks.
func (b Block) Check() error {
	switch b.Type {
	case "":
		return errors.New("type: missing; send text, image, audio, resource_link or resource")
	case BlockImage, BlockAudio:
		return need("mimeType", b.MimeType)
	case BlockResourceLink:
		return need("uri", b.URI)
	case BlockResource:
		if b.Resource == nil {
			return errors.New("resource: missing; send an object with a uri and a text or a blob")
		}
	}
	return nil
}

// MarshalJSON writes the members of its type.
func (b Block) MarshalJSON() ([]byte, error) {
	type common struct {
		Annotations json.RawMessage `json:"annotations,omitempty"`
		Meta        json.RawMessage `json:"_meta,omitempty"`
	}
	more := common{b.Annotations, b.Meta}
	switch b.Type {
	case BlockText:
		return strictjson.Encode(struct {
			Type string `json:"type"`
			Text string `json:"text"`
			common
		}{b.Type, b.Text, more}), nil
	case BlockImage, BlockAudio:
		return strictjson.Encode(struct {
			Type     string `json:"type"`
			Data     []byte `json:"data"`
			MimeType string `json:"mimeType"`
			URI      string `json:"uri,omitempty"`
			common
		}{b.Type, append([]byte{}, b.Data...), b.MimeType, b.URI, more}), nil
	case BlockResourceLink:
		return strictjson.Encode(struct {
			Type        string `json:"type"`
			URI         string `json:"uri"`
			Name        string `json:"name"`
			Title       string `json:"title,omitempty"`
			Description string `json:"description,omitempty"`
			MimeType    string `json:"mimeType,omitempty"`
			Size        int64  `json:"size,omitempty"`
			common
		}{b.Type, b.URI, b.Name, b.Title, b.Description, b.MimeType, b.Size, more}), nil
	case BlockResource:
		return strictjson.Encode(struct {
			Type     string    `json:"type"`
			Resource *Resource `json:"resource"`
			common
		}{b.Type, b.Resource, more}), nil
	}
	return nil, fmt.Errorf("a content block of the unknown type %q cannot be written", b.Type)
}
