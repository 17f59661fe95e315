package sessionfile

import "encoding/json"

// Body is the content of an entry that is no message: one of the types below.
type Body interface{ kind() string }

// The types of entries.
const (
	TypeMessage       = "message"
	TypeModel         = "model_change"
	TypeThinking      = "thinking_level_change"
	TypeCompaction    = "compaction"
	TypeBranchSummary = "branch_summary"
	TypeCustom        = "custom"
	TypeCustomMessage = "custom_message"
	TypeLabel         = "label"
	TypeInfo          = "session_info"
)

// ModelChange names the model of the answers that follow.
type ModelChange struct {
	Provider string `json:"provider"`
	ModelID  string `json:"modelId"`
}

// ThinkingLevelChange sets the thinking level of what follows.
type ThinkingLevelChange struct {
	ThinkingLevel string `json:"thinkingLevel"`
}

// Compaction replaces the entries before FirstKeptEntryID by a summary.
type Compaction struct {
	Summary          string          `json:"summary"`
	FirstKeptEntryID string          `json:"firstKeptEntryId"`
	TokensBefore     int64           `json:"tokensBefore"`
	Details          json.RawMessage `json:"details,omitempty"`
	FromHook         bool            `json:"fromHook,omitempty"`
}

// BranchSummary summarizes a branch that was left at FromID for this one.
type BranchSummary struct {
	FromID  string          `json:"fromId"`
	Summary string          `json:"summary"`
	Details json.RawMessage `json:"details,omitempty"`
}

// Custom has the data of an extension. It is not part of the conversation.
type Custom struct {
	CustomType string          `json:"customType"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// CustomMessage is a message of an extension in the conversation. Content is a text or a
// list of blocks.
type CustomMessage struct {
	CustomType string          `json:"customType"`
	Content    json.RawMessage `json:"content"`
	Display    bool            `json:"display"`
	Details    json.RawMessage `json:"details,omitempty"`
}

// Label labels another entry; an empty Label removes its label.
type Label struct {
	TargetID string `json:"targetId"`
	Label    string `json:"label,omitempty"`
}

// Info names the session.
type Info struct {
	Name string `json:"name"`
}

func (ModelChange) kind() string         { return TypeModel }
func (ThinkingLevelChange) kind() string { return TypeThinking }
func (Compaction) kind() string          { return TypeCompaction }
func (BranchSummary) kind() string       { return TypeBranchSummary }
func (Custom) kind() string              { return TypeCustom }
func (CustomMessage) kind() string       { return TypeCustomMessage }
func (Label) kind() string               { return TypeLabel }
func (Info) kind() string                { return TypeInfo }
