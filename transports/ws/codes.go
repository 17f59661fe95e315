package ws

import (
	"errors"
	"io"
	"unicode/utf8"

	"github.com/coder/websocket"

	"github.com/dragoman-hub/dragoman/core/link"
)

// StatusReplaced is the close code for a connection that was replaced by a newer one of the
// same agent.
const StatusReplaced = 4409

// maxText is the maximum size of the text of a close frame.
const maxText = 123

// codes are the close codes of causes. A Reason may ask for another code.
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

// causes are the causes of close codes from the peer. Other codes mean PeerGone.
var causes = map[websocket.StatusCode]link.Cause{
	websocket.StatusProtocolError:           link.Protocol,
	websocket.StatusUnsupportedData:         link.Protocol,
	websocket.StatusInvalidFramePayloadData: link.Protocol,
	websocket.StatusPolicyViolation:         link.Unauthorized,
	websocket.StatusMessageTooBig:           link.TooLarge,
	websocket.StatusTryAgainLater:           link.Overloaded,
	StatusReplaced:                          link.Replaced,
}

// status returns the code and the text of the close frame for r.
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

// sendable reports whether RFC 6455 allows code in a close frame.
func sendable(code websocket.StatusCode) bool {
	switch code {
	case 1004, websocket.StatusNoStatusRcvd, websocket.StatusAbnormalClosure:
		return false
	}
	return code >= 1000 && code <= 1014 || code >= 3000 && code <= 4999
}

// cutText cuts s to maxText at the boundary of a character.
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

// closeFrame returns the error of Receive for a close frame from the peer, and nil if err is
// something else.
func closeFrame(err error) error {
	var ce websocket.CloseError
	if !errors.As(err, &ce) {
		return nil
	}
	if !utf8.ValidString(ce.Reason) {
		return &link.Reason{Cause: link.Protocol, Text: "a close whose reason is not UTF-8", Code: int(websocket.StatusInvalidFramePayloadData)}
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
