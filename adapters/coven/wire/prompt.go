package wire

import (
	"cmp"

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

// ContentOf returns the content of a request and below it the parts for which Coven has no field: see
// [core.Request.Prompt]. folded reports whether there are any.
func ContentOf(r core.Request) (content string, folded bool) {
	var more []string
	if len(r.History) > 0 { // Coven agents keep their threads themselves: it came with the request
		more = append(more, core.Earlier(r.History))
	}
	content = r.Prompt(more...)
	return content, content != r.Content
}
