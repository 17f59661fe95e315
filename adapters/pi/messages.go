package pi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// message is one AgentMessage (facts, section 5), encoded once and sent and kept
// as it is.
type message struct {
	role  string
	json  json.RawMessage
	calls int        // of tools, in an assistant's message
	usage core.Usage // of an assistant's message
	// tokens is about how many the message takes in a context; 0 where nobody has
	// counted yet. words is how many bytes of text it says at least.
	tokens int64
	words  int
}

// The roles of messages.
const (
	roleUser      = "user"
	roleAssistant = "assistant"
	roleTool      = "toolResult"
	roleCustom    = "custom"
	roleBash      = "bashExecution"
)

// api is what stands in the api field of models and messages: they come through
// the hub.
const api = "dragoman"

// contentBlock is a part of the content of a message, as far as it is looked at.
type contentBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Data      string          `json:"data"`
	MimeType  string          `json:"mimeType"`
}

// blocks returns the content of a message.
func (m message) blocks() []contentBlock {
	var shape struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m.json, &shape) != nil {
		return nil
	}
	return blocksOf(shape.Content)
}

// blocksOf decodes the content of a message; a content that is a text is a block.
func blocksOf(content json.RawMessage) []contentBlock {
	if wire.IsString(content) {
		var text string
		if json.Unmarshal(content, &text) != nil {
			return nil
		}
		return []contentBlock{{Type: "text", Text: text}}
	}
	var blocks []contentBlock
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	return blocks
}

// text returns the text of a message.
func (m message) text() string { return textIn(m.blocks()) }

// textIn returns the text of all text blocks, put together.
func textIn(blocks []contentBlock) string {
	if len(blocks) == 1 && blocks[0].Type == "text" {
		return blocks[0].Text
	}
	var b strings.Builder
	for _, block := range blocks {
		if block.Type == "text" {
			b.WriteString(block.Text)
		}
	}
	return b.String()
}

// userMessage is what a person said.
func userMessage(text string, images []core.File, at int64) message {
	size := len(text) + 128
	for _, f := range images {
		size += base64.StdEncoding.EncodedLen(len(f.Data)) + 128
	}
	b := wire.AppendString(append(make([]byte, 0, size), `{"role":"user","content":[{"type":"text","text":`...), text)
	b = append(b, '}')
	for _, f := range images {
		b = append(appendImage(append(b, ','), f), '}')
	}
	b = append(b, `],"timestamp":`...)
	m := message{role: roleUser, json: append(strconv.AppendInt(b, at, 10), '}')}
	m.count(len(text)+len(images)*imageBytes, len(text))
	return m
}

// appendImage appends an image block without its closing brace.
func appendImage(dst []byte, f core.File) []byte {
	dst = append(dst, `{"type":"image","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, f.Data)
	return wire.AppendString(append(dst, `","mimeType":`...), f.MediaType)
}

// toolMessage is what a tool call came to.
func toolMessage(id, name, output string, isError bool, at int64) message {
	b := wire.AppendString(append([]byte(nil), `{"role":"toolResult","toolCallId":`...), id)
	b = wire.AppendString(append(b, `,"toolName":`...), name)
	b = append(appendContent(append(b, `,"content":`...), output), `,"isError":`...)
	b = append(strconv.AppendBool(b, isError), `,"timestamp":`...)
	m := message{role: roleTool, json: append(strconv.AppendInt(b, at, 10), '}')}
	m.count(len(output), 0)
	return m
}

// appendContent appends the content of one text block; none of an empty text.
func appendContent(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, '[', ']')
	}
	return append(wire.AppendString(append(dst, `[{"type":"text","text":`...), text), '}', ']')
}

// fileMessage carries a file that is no text: an image as an image, any other in
// the details.
func fileMessage(f core.File, at int64) message {
	b := []byte(`{"role":"custom","customType":"file","content":[`)
	details := map[string]any{"name": f.Name, "mediaType": f.MediaType}
	if strings.HasPrefix(f.MediaType, "image/") {
		b = append(appendImage(b, f), '}')
	} else {
		b = append(wire.AppendString(append(b, `{"type":"text","text":`...), fileNote(f)), '}')
		details["data"] = f.Data
	}
	b = append(append(b, `],"display":true,"details":`...), wire.Encode(details)...)
	b = append(b, `,"timestamp":`...)
	return message{role: roleCustom, json: append(strconv.AppendInt(b, at, 10), '}')}
}

// fileNote names a file within text.
func fileNote(f core.File) string {
	kind := f.MediaType
	if kind == "" {
		kind = "application/octet-stream"
	}
	return "[file " + f.Name + ", " + kind + ", " + strconv.Itoa(len(f.Data)) + " bytes]"
}

// argumentsDepth is how deep the input of a tool may be nested: what stands around it
// in a frame or in a session file goes with it into what every reader of JSON takes.
const argumentsDepth = 56

// arguments returns the input of a tool as the object that pi wants: the input
// itself when it is one, on one line, as messages stand in session files; else an
// object that holds it. What is no strict JSON is a text.
func arguments(input string) json.RawMessage {
	raw := bytes.TrimSpace([]byte(input))
	strict := core.CheckJSON(raw, core.JSONLimits{Bytes: len(raw), Depth: argumentsDepth}) == nil
	if strict && bytes.ContainsAny(raw, "\r\n") {
		var line bytes.Buffer
		_ = json.Compact(&line, raw) // it was checked
		raw = line.Bytes()
	}
	switch {
	case len(raw) == 0:
		return json.RawMessage("{}")
	case strict && raw[0] == '{':
		return raw
	case strict:
		return append(append(json.RawMessage(`{"input":`), raw...), '}')
	}
	return append(wire.AppendString(json.RawMessage(`{"input":`), input), '}')
}

// appendUsage appends tokens as pi counts them: thinking is output there.
func appendUsage(dst []byte, u core.Usage) []byte {
	field := func(name string, n int64) {
		dst = strconv.AppendInt(append(dst, name...), n, 10)
	}
	output := u.Output + u.Thinking
	field(`{"input":`, u.Input)
	field(`,"output":`, output)
	field(`,"cacheRead":`, u.CacheRead)
	field(`,"cacheWrite":`, u.CacheWrite)
	field(`,"totalTokens":`, u.Input+output+u.CacheRead+u.CacheWrite)
	return append(dst, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}
