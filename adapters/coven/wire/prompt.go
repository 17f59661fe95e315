package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// PromptOf returns the SendMessage that gives a task to an agent. folded reports whether
// parts of the request for which Coven has no field are in the content.
func PromptOf(task core.TaskID, from core.Principal, r core.Request) (m *pb.ServerMessage, folded bool) {
	content, folded := ContentOf(r)
	whole := &struct { // one allocation
		pb.ServerMessage
		payload pb.ServerMessage_SendMessage
		prompt  pb.SendMessage
	}{}
	whole.Payload, whole.payload.SendMessage = &whole.payload, &whole.prompt
	p := &whole.prompt
	p.RequestId = ValidUTF8(string(task))
	// Agents run the requests of a thread one at a time: requests without a thread must
	// not wait for each other.
	p.ThreadId = ValidUTF8(cmp.Or(string(r.Thread), string(task)))
	p.Sender, p.Content = ValidUTF8(from.ID), ValidUTF8(content)
	for _, f := range r.Attachments {
		p.Attachments = append(p.Attachments, &pb.FileAttachment{Filename: ValidUTF8(f.Name), MimeType: ValidUTF8(f.MediaType), Data: f.Data})
	}
	return &whole.ServerMessage, folded
}

// RequestOf returns the request of a message. What [PromptOf] folded stays in the content.
func RequestOf(m *pb.SendMessage) core.Request {
	return core.Request{
		Intent: core.IntentAsk, Thread: core.ThreadID(m.GetThreadId()), Content: m.GetContent(), Attachments: FilesOf(m.GetAttachments()),
	}
}

// FilesOf returns the files of attachments.
func FilesOf(attachments []*pb.FileAttachment) (files []core.File) {
	for _, f := range attachments {
		files = append(files, core.File{Name: f.GetFilename(), MediaType: f.GetMimeType(), Data: f.GetData()})
	}
	return files
}

// ContentOf returns the content of a request and below it, each under a heading, the parts
// for which Coven has no field; folded reports whether there are any. Structures are JSON
// in a fence that does not occur in them:
//
//	Who is free on Friday?
//
//	Data:
//	```json
//	{"week":12}
//	```
func ContentOf(r core.Request) (content string, folded bool) {
	var parts []string
	if r.Content != "" {
		parts = append(parts, r.Content)
	}
	plain := len(parts)
	if n := r.Notice; n != nil {
		heading := "Notice (no answer is expected): " + n.Topic
		if n.Importance > core.ImportanceLow {
			heading += fmt.Sprintf(" (importance: %s)", n.Importance)
		}
		parts = append(parts, heading)
		if len(n.Data) > 0 {
			parts = append(parts, Fenced("Data", n.Data))
		}
	}
	if len(r.Data) > 0 {
		parts = append(parts, Fenced("Data", r.Data))
	}
	if len(r.Context) > 0 {
		parts = append(parts, Fenced("Context", r.Context))
	}
	// Coven agents keep their threads themselves: this history came with the request.
	if len(r.History) > 0 {
		parts = append(parts, Fenced("Earlier in this conversation", turnsJSON(r.History)))
	}
	if r.Domain != "" {
		parts = append(parts, "Domain: "+r.Domain)
	}
	if r.MaxTokens > 0 {
		parts = append(parts, fmt.Sprintf("Answer in at most %d tokens.", r.MaxTokens))
	}
	return strings.Join(parts, "\n\n"), len(parts) > plain
}

// turnsJSON is [{"role":"user","text":"..."},{"role":"assistant","agent":"a","text":"..."}].
func turnsJSON(turns []core.Turn) []byte {
	type turn struct {
		Role  string       `json:"role"`
		Agent core.AgentID `json:"agent,omitempty"`
		Text  string       `json:"text"`
	}
	all := make([]turn, len(turns))
	for i, t := range turns {
		all[i] = turn{t.Role.String(), t.Agent, t.Text}
	}
	b, err := json.Marshal(all)
	if err != nil {
		panic(err) // strings always marshal
	}
	return b
}

// Fenced returns JSON under a heading, in a fence longer than any run of backticks in it.
func Fenced(heading string, data []byte) string {
	fence := "```"
	for bytes.Contains(data, []byte(fence)) {
		fence += "`"
	}
	return heading + ":\n" + fence + "json\n" + string(data) + "\n" + fence
}
