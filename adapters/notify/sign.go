package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"time"
)

// headers returns what gives each attempt its headers: by Standard Webhooks the id is the same, and the time is that
// of the attempt.
func (w Webhook) headers(id string, body []byte) func(attempt int) http.Header {
	return func(int) http.Header {
		at := strconv.FormatInt(time.Now().Unix(), 10)
		h := http.Header{"Content-Type": {"application/json"}}
		h.Set("Webhook-Id", id)
		h.Set("Webhook-Timestamp", at)
		if w.Key != nil {
			sum := hmac.New(sha256.New, w.Key)
			sum.Write([]byte(id + "." + at + "."))
			sum.Write(body)
			h.Set("Webhook-Signature", "v1,"+base64.StdEncoding.EncodeToString(sum.Sum(nil)))
		}
		return h
	}
}
