package service

import (
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/memory"
)

// newFrames returns what keeps the frames of connections; nil if none are kept.
func newFrames(keep int, budget *memory.Budget) *frame.Book {
	return frame.NewBook(frame.Options{Keep: keep, Memory: budget, Translations: translations()})
}

// protoJSON returns a message of a gRPC stream as its JSON.
func protoJSON(message any) []byte {
	m, ok := message.(proto.Message)
	if !ok {
		return nil
	}
	b, err := protojson.MarshalOptions{AllowPartial: true}.Marshal(m)
	if err != nil { // a text that is no UTF-8
		return []byte(err.Error())
	}
	return b
}
