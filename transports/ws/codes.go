package ws

import (
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/core/link"
)

// StatusReplaced is the close code for a connection whose place was taken by a
// newer one of the same agent.
const StatusReplaced = 4409

// maxText is how many bytes of text a close frame can carry.
const maxText = 123

// codes are the close codes by which a cause is told. A Reason may ask for another.
var codes = map[link.Cause]websocket.StatusCode{
	link.Normal:       websocket.StatusNormalClosure,
	link.PeerGone:     websocket.StatusGoingAway,
	link.ShuttingDown: websocket.StatusGoingAway,
	link.Protocol:     websocket.StatusProtocolError,
	link.TooLarge:     websocket.StatusMessageTooBig,
	link.Unauthorized: websocket.StatusPolicyViolation,
	link.Replaced:     StatusReplaced,
	link.Slow:         websocket.StatusTryAgainLater,
	link.Unresponsive: websocket.StatusGoingAway,
	link.Overloaded:   websocket.StatusTryAgainLater,
	link.Internal:     websocket.StatusInternalError,
}

// causes are the causes that a close code from the peer means. Any other code
// means that the peer has gone.
var causes = map[websocket.StatusCode]link.Cause{
	websocket.StatusProtocolError:           link.Protocol,
	websocket.StatusUnsupportedData:         link.Protocol,
	websocket.StatusInvalidFramePayloadData: link.Protocol,
	websocket.StatusPolicyViolation:         link.Unauthorized,
	websocket.StatusMessageTooBig:           link.TooLarge,
	websocket.StatusTryAgainLater:           link.Overloaded,
	StatusReplaced:                          link.Replaced,
}

// status returns what a close frame says for r.
func status(r link.Reason) (websocket.StatusCode, string) {
	code := websocket.StatusCode(r.Code)
	if !sendable(code) {
		code = websocket.StatusInternalError
		if c, ok := codes[r.Cause]; ok {
			code = c
		}
	}
	return code, cutText(r.Text)
}

// sendable reports whether RFC 6455 lets a close frame carry code.
func sendable(code websocket.StatusCode) bool {
	switch code {
	case 1004, websocket.StatusNoStatusRcvd, websocket.StatusAbnormalClosure:
		return false
	}
	return code >= 1000 && code <= 1014 || code >= 3000 && code <= 4999
}

// cutText shortens s to what a close frame can carry, at the end of a letter.
func cutText(s string) string {
	if len(s) <= maxText {
		return s
	}
	end := maxText
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end]
}

// closeFrame returns what a close frame from the peer means to Receive, and nil
// if err comes of something else.
func closeFrame(err error) error {
	var ce websocket.CloseError
	if !errors.As(err, &ce) {
		return nil
	}
	switch ce.Code {
	case websocket.StatusNormalClosure, websocket.StatusGoingAway, websocket.StatusNoStatusRcvd:
		return io.EOF
	}
	cause, ok := causes[ce.Code]
	if !ok {
		cause = link.PeerGone
	}
	return &link.Reason{Cause: cause, Text: ce.Reason, Code: int(ce.Code)}
}
