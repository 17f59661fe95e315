package hub

import "github.com/dragoman-hub/dragoman/core/task"

// Task is a [task.Task].
type Task = task.Task

// Role is a [task.Role].
type Role = task.Role

// State is a [task.State].
type State = task.State

// Gap is a [task.Gap].
type Gap = task.Gap

// PendingApproval is a [task.PendingApproval].
type PendingApproval = task.PendingApproval

// TaskStatus is a [task.Status].
type TaskStatus = task.Status

// TaskFilter is a [task.Filter].
type TaskFilter = task.Filter

// The states, roles and bounds of package task.
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
