package grpcserver

import (
	"errors"
	"io"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dragoman-hub/dragoman/core/link"
)

// maxText is the maximum length of a status text, which is sent in a header.
const maxText = 1024

// codeOf is the gRPC code of each cause. PeerGone has none: the peer either cannot receive
// it or has half-closed and gets OK.
var codeOf = map[link.Cause]codes.Code{
	link.Normal:       codes.OK,
	link.PeerGone:     codes.OK,
	link.ShuttingDown: codes.Unavailable,
	link.Protocol:     codes.InvalidArgument,
	link.TooLarge:     codes.ResourceExhausted,
	link.Unauthorized: codes.Unauthenticated,
	link.Replaced:     codes.Aborted,
	link.Slow:         codes.ResourceExhausted,
	link.Unresponsive: codes.DeadlineExceeded,
	link.Overloaded:   codes.ResourceExhausted,
	link.Internal:     codes.Internal,
}

// causeOf is the cause of each code of a server's status, for its client.
var causeOf = map[codes.Code]link.Cause{
	codes.Canceled:           link.PeerGone,
	codes.Unknown:            link.Internal,
	codes.InvalidArgument:    link.Protocol,
	codes.DeadlineExceeded:   link.Unresponsive,
	codes.NotFound:           link.Protocol,
	codes.AlreadyExists:      link.Protocol,
	codes.PermissionDenied:   link.Unauthorized,
	codes.ResourceExhausted:  link.Overloaded,
	codes.FailedPrecondition: link.Protocol,
	codes.Aborted:            link.Replaced,
	codes.OutOfRange:         link.Protocol,
	codes.Unimplemented:      link.Protocol,
	codes.Internal:           link.Internal,
	codes.Unavailable:        link.PeerGone,
	codes.DataLoss:           link.Internal,
	codes.Unauthenticated:    link.Unauthorized,
}

// Status returns the error for a handler whose connection ended for r: nil for a normal
// end, else a gRPC status with r.Text and the code of the cause, or r.Code if that is a
// gRPC code.
func Status(r link.Reason) error { return statusOf(r).Err() }

// statusOf returns Status as a status.
func statusOf(r link.Reason) *status.Status {
	code, ok := codeOf[r.Cause]
	if !ok {
		code = codes.Unknown
	}
	if r.Code > 0 && r.Code <= int(codes.Unauthenticated) {
		code = codes.Code(r.Code)
	}
	text := r.Text
	if text == "" && code != codes.OK {
		text = r.Cause.String()
	}
	if len(text) > maxText {
		text = text[:maxText]
	}
	return status.New(code, text)
}

// served turns an error of a server's stream into the error of Receive and Send. The code
// was chosen by grpc-go from what happened to the stream.
func served(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	st := status.Convert(err)
	r := &link.Reason{Cause: link.PeerGone, Text: st.Message(), Code: int(st.Code())}
	switch st.Code() {
	case codes.ResourceExhausted:
		r.Cause = link.TooLarge
	case codes.Internal, codes.Unimplemented, codes.Unknown, codes.InvalidArgument:
		// A frame that is not a message, or has an unknown compression.
		r.Cause = link.Protocol
	}
	return r
}

// answered turns an error of a client's stream into the error of Receive and Send. The code
// was usually chosen by the server.
func answered(err error) error {
	if errors.Is(err, io.EOF) {
		return io.EOF
	}
	st := status.Convert(err)
	r := &link.Reason{Cause: causeOf[st.Code()], Text: st.Message(), Code: int(st.Code())}
	if strings.HasPrefix(r.Text, "grpc: received message larger than max") {
		r.Cause = link.TooLarge
	}
	return r
}
