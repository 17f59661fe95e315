package wire

import "github.com/dragoman-hub/dragoman/core/strictjson"

// Qwen Code puts a question to people as a request for permission whose tool call says so in its _meta
// (qwenInteractionKind, qwenQuestions; 0.24.4), and reads the answers beside the outcome.

// UserQuestion is one question of such a request.
type UserQuestion struct {
	Header      string `json:"header"`
	Question    string `json:"question"`
	MultiSelect bool   `json:"multiSelect"`
	Options     []struct {
		Label       string `json:"label"`
		Description string `json:"description"`
	} `json:"options"`
}

// UserAnswers answers a request of questions: Answers has the answer to each by its index, from "0" on.
type UserAnswers struct {
	PermissionResponse
	Answers map[string]string `json:"answers"`
}

// maxUserQuestions bounds the questions of a request, and maxUserQuestionBytes their size.
const (
	maxUserQuestions     = 16
	maxUserQuestionBytes = 16 << 10
)

// UserQuestions returns what the request asks people; none if it asks for permission, or for what cannot be asked.
func (r *PermissionRequest) UserQuestions() (all []UserQuestion) {
	if len(r.ToolCall.Meta) == 0 {
		return nil
	}
	meta := strictjson.ParseValid(r.ToolCall.Meta)
	if kind, _ := meta.Get("qwenInteractionKind").Text(); kind != "user_question" {
		return nil
	}
	questions := meta.Get("qwenQuestions")
	if len(questions.Raw()) > maxUserQuestionBytes || questions.Decode(&all) != nil || len(all) > maxUserQuestions {
		return nil
	}
	return all
}
