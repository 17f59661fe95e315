package conversation

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Message is one AgentMessage (facts, section 5). It is encoded once.
type Message struct {
	Role  string
	JSON  json.RawMessage
	Calls int        // tool calls of an assistant's message
	Usage core.Usage // of an assistant's message
	// Tokens is roughly how many tokens the message takes in a context, 0 if not counted yet.
	// TextBytes is a lower bound of its text.
	Tokens    int64
	TextBytes int
}

// The roles of messages.
const (
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "toolResult"
	RoleCustom    = "custom"
	RoleBash      = "bashExecution"
)

// API is the api field of models and messages that come through the hub.
const API = "dragoman"

// Block is a part of the content of a message, with the members that the hub uses.
type Block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Data      string          `json:"data"`
	MimeType  string          `json:"mimeType"`
}

// Blocks returns the content of a message.
func (m Message) Blocks() []Block {
	var shape struct {
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(m.JSON, &shape) != nil {
		return nil
	}
	return blocksOf(shape.Content)
}

// blocksOf decodes the content of a message, which may be a string or a list of blocks.
func blocksOf(content json.RawMessage) []Block {
	var text *string
	if json.Unmarshal(content, &text) == nil && text != nil {
		return []Block{{Type: "text", Text: *text}}
	}
	var blocks []Block
	if json.Unmarshal(content, &blocks) != nil {
		return nil
	}
	return blocks
}

// Text returns the text of all text blocks of a message.
func (m Message) Text() string { return textIn(m.Blocks()) }

// textIn returns the text of all text blocks.
func textIn(blocks []Block) string {
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

// UserMessage returns the message of a person.
func UserMessage(text string, images []core.File, at int64) Message {
	size := len(text) + 128
	for _, f := range images {
		size += base64.StdEncoding.EncodedLen(len(f.Data)) + 128
	}
	b := strictjson.AppendString(append(make([]byte, 0, size), `{"role":"user","content":[{"type":"text","text":`...), text)
	b = append(b, '}')
	for _, f := range images {
		b = appendImage(append(b, ','), f)
	}
	m := Message{Role: RoleUser, JSON: withTime(append(b, ']'), at)}
	m.Count(len(text)+len(images)*imageBytes, len(text))
	return m
}

// withTime ends the object of a message with its time.
func withTime(dst []byte, at int64) json.RawMessage {
	return append(strconv.AppendInt(append(dst, `,"timestamp":`...), at, 10), '}')
}

// appendImage appends an image block.
func appendImage(dst []byte, f core.File) []byte {
	dst = append(dst, `{"type":"image","data":"`...)
	dst = base64.StdEncoding.AppendEncode(dst, f.Data)
	return append(strictjson.AppendString(append(dst, `","mimeType":`...), f.MediaType), '}')
}

// ToolMessage returns the result of a tool call.
func ToolMessage(id, name, output string, isError bool, at int64) Message {
	w := strictjson.Writer{B: []byte(`{"role":"toolResult"`)}
	w.Text("toolCallId", id)
	w.Text("toolName", name)
	w.B = AppendContent(append(w.B, `,"content":`...), output)
	w.Bool("isError", isError)
	m := Message{Role: RoleTool, JSON: withTime(w.B, at)}
	m.Count(len(output), 0)
	return m
}

// AppendContent appends a content of one text block, or of none if the text is empty.
func AppendContent(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, '[', ']')
	}
	return append(strictjson.AppendString(append(dst, `[{"type":"text","text":`...), text), '}', ']')
}

// FileMessage returns a message with a file that is no text: an image as an image, any
// other file in the details.
func FileMessage(f core.File, at int64) Message {
	b := []byte(`{"role":"custom","customType":"file","content":[`)
	details := map[string]any{"name": f.Name, "mediaType": f.MediaType}
	if strings.HasPrefix(f.MediaType, "image/") {
		b = appendImage(b, f)
	} else {
		b = append(strictjson.AppendString(append(b, `{"type":"text","text":`...), FileNote(f)), '}')
		details["data"] = f.Data
	}
	b = append(append(b, `],"display":true,"details":`...), strictjson.Encode(details)...)
	return Message{Role: RoleCustom, JSON: withTime(b, at)}
}

// FileNote returns a text that names a file.
func FileNote(f core.File) string {
	kind := f.MediaType
	if kind == "" {
		kind = "application/octet-stream"
	}
	return "[file " + f.Name + ", " + kind + ", " + strconv.Itoa(len(f.Data)) + " bytes]"
}

// BytesPerToken is the estimated length of a token; imageBytes is the length of text that an
// image counts as.
const (
	BytesPerToken = 4
	imageBytes    = 4_800
)

// ArgumentsDepth is how deep the input of a tool may be nested, so that the frame or session
// file around it stays within what every reader of JSON takes.
const ArgumentsDepth = 56

// ToolArguments returns the input of a tool as the object that pi wants, on one line for
// session files: the input itself if it is an object, else an object that holds it. Input
// that is not strict JSON is text.
func ToolArguments(input string) json.RawMessage {
	raw := bytes.Trim([]byte(input), " \t\r\n") // JSON white space
	strict := strictjson.Check(raw, strictjson.Limits{Bytes: len(raw), Depth: ArgumentsDepth}) == nil
	if strict && bytes.ContainsAny(raw, "\r\n") {
		var line bytes.Buffer
		_ = json.Compact(&line, raw) // it was checked
		raw = line.Bytes()
	}
	switch {
	case len(bytes.TrimSpace(raw)) == 0:
		return json.RawMessage("{}")
	case strict && raw[0] == '{':
		return raw
	case strict:
		return append(append(json.RawMessage(`{"input":`), raw...), '}')
	}
	return append(strictjson.AppendString(json.RawMessage(`{"input":`), input), '}')
}

// AppendUsage appends tokens as pi counts them, where thinking is output.
func AppendUsage(dst []byte, u core.Usage) []byte {
	w := strictjson.Writer{B: append(dst, '{')}
	output := u.Output + u.Thinking
	w.Number("input", u.Input)
	w.Number("output", output)
	w.Number("cacheRead", u.CacheRead)
	w.Number("cacheWrite", u.CacheWrite)
	w.Number("totalTokens", u.Input+output+u.CacheRead+u.CacheWrite)
	return append(w.B, `,"cost":{"input":0,"output":0,"cacheRead":0,"cacheWrite":0,"total":0}}`...)
}

// IsText reports whether a file is text.
func IsText(f core.File) bool {
	kind, _, _ := strings.Cut(f.MediaType, ";")
	text := strings.HasPrefix(kind, "text/") || kind == "application/json" || strings.HasSuffix(kind, "+json") ||
		kind == "application/xml" || strings.HasSuffix(kind, "+xml") || kind == "application/yaml"
	return text && utf8.Valid(f.Data)
}

// BashMessage returns the message of a bash command (facts, section 5).
func BashMessage(command, output string, code int, cancelled, truncated, excluded bool, at int64) Message {
	w := strictjson.Writer{B: []byte(`{"role":"bashExecution"`)}
	w.Text("command", command)
	w.Text("output", output)
	w.Number("exitCode", int64(code))
	w.Bool("cancelled", cancelled)
	w.Bool("truncated", truncated)
	w.Flag("excludeFromContext", excluded)
	m := Message{Role: RoleBash, JSON: withTime(w.B, at)}
	m.Count(len(bashText)-len("%s%s")+len(command)+len(output), 0)
	return m
}

// WithSender adds the sender to a message.
func WithSender(m Message, from string) Message {
	m.JSON = append(strictjson.AppendString(append(m.JSON[:len(m.JSON)-1], `,"from":`...), from), '}')
	return m
}

// JSONSize returns an upper bound of the messages as a JSON array.
func JSONSize(messages []Message) int {
	n := 2
	for _, m := range messages {
		n += len(m.JSON) + 1
	}
	return n
}

// AppendMessages appends the messages as a JSON array.
func AppendMessages(dst []byte, messages []Message) []byte {
	dst = append(dst, '[')
	for i, m := range messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, m.JSON...)
	}
	return append(dst, ']')
}

// describe returns the text of a message, else its thinking, else the output or the command
// line of a bash command, else a summary.
func (m Message) describe() string {
	if text := m.Text(); text != "" {
		return text
	}
	for _, b := range m.Blocks() {
		if b.Thinking != "" {
			return b.Thinking
		}
	}
	var b struct {
		Output  string `json:"output"`
		Command string `json:"command"`
		Summary string `json:"summary"`
	}
	_ = json.Unmarshal(m.JSON, &b) // members of another type are left out
	return cmp.Or(b.Output, b.Command, b.Summary)
}

// Count sets the size of a message by the bytes that it takes in a context, and the bytes of
// its text.
func (m *Message) Count(bytes, textBytes int) {
	m.Tokens, m.TextBytes = int64((bytes+BytesPerToken-1)/BytesPerToken), textBytes
}

// estimate returns roughly how many tokens a message takes in a context. A message that was
// not counted before is decoded.
func estimate(m Message) int64 {
	if m.Tokens == 0 && len(m.JSON) > 0 {
		m.countBlocks(m.Blocks())
	}
	return m.Tokens
}

// countBlocks counts a message by its content.
func (m *Message) countBlocks(blocks []Block) {
	n := 0
	for _, b := range blocks {
		if b.Type == "image" {
			n += imageBytes
		} else {
			n += len(b.Text) + len(b.Thinking) + len(b.Name) + len(b.Arguments)
		}
	}
	if n == 0 {
		n = len(m.plainText(blocks))
	}
	m.Count(n, len(textIn(blocks)))
}
