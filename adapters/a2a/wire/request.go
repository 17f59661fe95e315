package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// SendRequest is the request of SendMessage and SendStreamingMessage (section 3.2.1).
type SendRequest struct {
	Tenant        string
	Message       Message
	Configuration Configuration
	Metadata      json.RawMessage // an object, or nil
	Unknown       json.RawMessage
}

// Configuration says how a message is to be answered (section 3.2.2).
type Configuration struct {
	AcceptedOutputModes []string    `json:"acceptedOutputModes,omitempty"`
	HistoryLength       *int        `json:"historyLength,omitempty"`
	ReturnImmediately   bool        `json:"returnImmediately,omitempty"`
	Push                *PushConfig `json:"taskPushNotificationConfig,omitempty"`
}

var sendRequestObject = &object[SendRequest]{func(r *SendRequest) *json.RawMessage { return &r.Unknown }, []member[SendRequest]{
	textAt("tenant", func(r *SendRequest) *string { return &r.Tenant }),
	valueAt("message", func(r *SendRequest) *Message { return &r.Message }, messageObject),
	{"configuration", func(r *SendRequest, v strictjson.Value) error { return v.Decode(&r.Configuration) }, func(w *strictjson.Writer, r *SendRequest) {
		w.Raw("configuration", strictjson.Encode(r.Configuration))
	}},
	objectAt("metadata", func(r *SendRequest) *json.RawMessage { return &r.Metadata }),
}}

// ReadSendRequest reads the request of SendMessage or SendStreamingMessage.
func ReadSendRequest(v strictjson.Value) (r SendRequest, err error) {
	if err := sendRequestObject.read(&r, v); err != nil {
		return r, err
	}
	if err := r.Configuration.check(); err != nil {
		return r, under("configuration", err)
	}
	return r, under("message", r.Message.check())
}

func (c Configuration) check() error {
	if err := checkLength(c.HistoryLength); err != nil {
		return err
	}
	if c.Push == nil {
		return nil
	}
	return under("taskPushNotificationConfig", c.Push.checkTarget())
}

func checkLength(n *int) error {
	if n != nil && *n < 0 {
		return under("historyLength", wrong("want 0 or more, got %d", *n))
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r SendRequest) MarshalJSON() ([]byte, error) { return sendRequestObject.append(nil, &r), nil }

// ListTasksRequest is the request of ListTasks (section 3.1.4).
type ListTasksRequest struct {
	Tenant               string `json:"tenant,omitempty"`
	ContextID            string `json:"contextId,omitempty"`
	Status               State  `json:"status,omitempty"`
	PageSize             *int   `json:"pageSize,omitempty"`
	PageToken            string `json:"pageToken,omitempty"`
	HistoryLength        *int   `json:"historyLength,omitempty"`
	StatusTimestampAfter string `json:"statusTimestampAfter,omitempty"`
	IncludeArtifacts     bool   `json:"includeArtifacts,omitempty"`
}

// The page sizes of ListTasks (section 3.1.4).
const (
	DefaultPageSize = 50
	MaxPageSize     = 100
)

func (r ListTasksRequest) check() error {
	switch {
	case r.Status != "" && r.Status != "TASK_STATE_UNSPECIFIED" && !r.Status.Known():
		return under("status", wrong("want one of the states, such as %s, got %.40q", StateWorking, r.Status))
	case r.PageSize != nil && (*r.PageSize < 1 || *r.PageSize > MaxPageSize):
		return under("pageSize", wrong("want 1 to %d, got %d", MaxPageSize, *r.PageSize))
	}
	if _, err := r.After(); err != nil {
		return err
	}
	return checkLength(r.HistoryLength)
}

// After returns StatusTimestampAfter, zero for none.
func (r ListTasksRequest) After() (time.Time, error) {
	if r.StatusTimestampAfter == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, r.StatusTimestampAfter)
	if err != nil {
		return t, under("statusTimestampAfter", wrong("want a time such as 2026-11-22T03:07:17.640Z, got %.40q", r.StatusTimestampAfter))
	}
	return t, nil
}

// ListTasksResponse is the answer to ListTasks. All members are always there.
type ListTasksResponse struct {
	Tasks         []Task `json:"tasks"`
	NextPageToken string `json:"nextPageToken"`
	PageSize      int    `json:"pageSize"`
	TotalSize     int    `json:"totalSize"`
}

// TaskRequest is the request of GetTask, CancelTask and SubscribeToTask. An unset HistoryLength
// leaves the number of messages to the server. The metadata of SubscribeToTask is that of
// [CursorExtension].
type TaskRequest struct {
	Tenant        string          `json:"tenant,omitempty"`
	ID            string          `json:"id"`
	HistoryLength *int            `json:"historyLength,omitempty"`
	Metadata      json.RawMessage `json:"metadata,omitempty"`
}

func (r TaskRequest) check() error {
	if r.ID == "" {
		return missing("id", "name the task")
	}
	return checkLength(r.HistoryLength)
}

// Cursor returns the cursor of [CursorExtension] in the metadata; "" for none.
func (r TaskRequest) Cursor() (string, error) {
	if len(r.Metadata) == 0 {
		return "", nil
	}
	v, err := Parse(r.Metadata)
	if err != nil {
		return "", under("metadata", err)
	}
	var cursor string
	return cursor, under("metadata", under("["+CursorExtension+"]", textIn(v.Get(CursorExtension), &cursor)))
}

// PushConfig is where a task's updates are posted (section 4.3.1), and the request to create
// one.
type PushConfig struct {
	Tenant         string `json:"tenant,omitempty"`
	TaskID         string `json:"taskId,omitempty"`
	ID             string `json:"id,omitempty"`
	URL            string `json:"url"`
	Token          string `json:"token,omitempty"`
	Authentication *struct {
		Scheme      string `json:"scheme"`
		Credentials string `json:"credentials,omitempty"`
	} `json:"authentication,omitempty"`
}

func (c PushConfig) check() error {
	if c.TaskID == "" {
		return missing("taskId", "name the task")
	}
	return c.checkTarget()
}

func (c PushConfig) checkTarget() error {
	switch {
	case c.URL == "":
		return missing("url", "say where the updates are to be posted")
	case c.Authentication != nil && c.Authentication.Scheme == "":
		return under("authentication", missing("scheme", "name an HTTP authentication scheme, such as Bearer"))
	case c.Authentication == nil:
		return checkHeader("token", c.Token)
	}
	return cmp.Or(
		checkHeader("token", c.Token), under("authentication", checkHeader("scheme", c.Authentication.Scheme)),
		under("authentication", checkHeader("credentials", c.Authentication.Credentials)),
	)
}

// maxHeader is how long a text of a configuration may be that becomes a part of a header, in bytes.
const maxHeader = 4096

// checkHeader returns the error for the text of a member that becomes a part of a header of each
// notification and cannot be: only visible characters and blanks between them can (RFC 9110, section
// 5.5).
func checkHeader(member, text string) error {
	isBad := func(r rune) bool { return r < ' ' || r == 0x7f }
	switch {
	case len(text) > maxHeader:
		return &strictjson.Error{Path: member, Problem: fmt.Sprintf("want at most %d bytes, got %d", maxHeader, len(text))}
	case strings.ContainsFunc(text, isBad), strings.TrimSpace(text) != text:
		return &strictjson.Error{Path: member, Problem: "it becomes a header: send it without line breaks, other control characters and blanks around it"}
	}
	return nil
}

// PushRequest is the request to list the push notification configurations of a task, or with an
// ID to get or delete one.
type PushRequest struct {
	Tenant    string `json:"tenant,omitempty"`
	TaskID    string `json:"taskId"`
	ID        string `json:"id,omitempty"`
	PageSize  int    `json:"pageSize,omitempty"`
	PageToken string `json:"pageToken,omitempty"`
}

func (r PushRequest) check() error {
	if r.TaskID == "" {
		return missing("taskId", "name the task")
	}
	return nil
}

// CheckID returns the error for a request that has to name a configuration and does not.
func (r PushRequest) CheckID() error {
	if r.ID == "" {
		return missing("id", "name the configuration")
	}
	return nil
}

// ListPushResponse is the answer to a [PushRequest] without an ID.
type ListPushResponse struct {
	Configs       []PushConfig `json:"configs"`
	NextPageToken string       `json:"nextPageToken"`
}

// CardRequest is the request of GetExtendedAgentCard.
type CardRequest struct {
	Tenant string `json:"tenant,omitempty"`
}

func (CardRequest) check() error { return nil }

// Request is what [Read] reads.
type Request interface {
	ListTasksRequest | TaskRequest | PushConfig | PushRequest | CardRequest
	check() error
}

// Read reads the request of a method from its params or its body.
func Read[R Request](v strictjson.Value) (R, error) {
	var r R
	if err := wantObject(v); err != nil {
		return r, err
	}
	if err := v.Decode(&r); err != nil {
		return r, err
	}
	return r, r.check()
}
