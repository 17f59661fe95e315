package a2a

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

var errNoPush = wire.NewError(wire.ReasonPushNotSupported, "this hub posts no notifications: subscribe to the task instead")

func (s *Server) pushes() bool { return false }

func (c *call) checkPush(wire.PushConfig) error { return errNoPush }

func (c *call) addPush(*task.Task, wire.PushConfig) (wire.PushConfig, error) {
	return wire.PushConfig{}, errNoPush
}

func (c *call) createPush(strictjson.Value) (json.RawMessage, error) { return nil, errNoPush }
func (c *call) getPush(strictjson.Value) (json.RawMessage, error)    { return nil, errNoPush }
func (c *call) listPush(strictjson.Value) (json.RawMessage, error)   { return nil, errNoPush }
func (c *call) deletePush(strictjson.Value) (json.RawMessage, error) { return nil, errNoPush }
