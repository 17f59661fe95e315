package hub

import "github.com/dragoman-hub/dragoman/core/task"

// What sessions hand out and take of tasks.
type (
	Task            = task.Task
	Role            = task.Role
	State           = task.State
	Gap             = task.Gap
	PendingApproval = task.PendingApproval
	TaskStatus      = task.Status
	TaskFilter      = task.Filter
)

// The names of package task under which callers know them.
const (
	Queued        = task.Queued
	Running       = task.Running
	Ended         = task.Ended
	Requester     = task.Requester
	Agent         = task.Agent
	Viewer        = task.Viewer
	Subscriber    = task.Subscriber
	DefaultListed = task.DefaultListed
	MostListed    = task.MostListed
	CatalogTasks  = task.CatalogTasks
)

// TaskStates are the states that a task may be listed by.
var TaskStates = task.States
