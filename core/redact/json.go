package redact

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// JSON returns JSON without what is redacted: in each of its texts, whatever their escapes, and
// in the whole. JSON that would not be valid then becomes one text, the Mark. What was not
// valid before is redacted as text.
func (r *Redactor) JSON(raw json.RawMessage) json.RawMessage {
	if r == nil || len(raw) == 0 {
		return raw
	}
	if text := r.json(string(raw)); text != string(raw) {
		return json.RawMessage(text)
	}
	return raw
}

func (r *Redactor) json(raw string) string {
	out := r.Text(r.texts(raw))
	if out == raw {
		return raw
	}
	if isJSON(raw) && !isJSON(out) {
		return `"` + Mark + `"`
	}
	return out
}

func isJSON(text string) bool { return strictjson.Check([]byte(text), strictjson.Limits{}) == nil }

// texts redacts the texts of JSON whose escapes hide what they say.
func (r *Redactor) texts(raw string) string {
	if !strings.Contains(raw, `\`) {
		return raw // all texts are as written
	}
	var b strings.Builder
	at := 0
	for i := 0; i < len(raw); i++ {
		if raw[i] != '"' {
			continue
		}
		end := i + 1
		for end < len(raw) && raw[end] != '"' {
			if raw[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(raw) {
			break
		}
		token := raw[i : end+1]
		if strings.Contains(token, `\`) {
			if v, err := strictjson.Parse([]byte(token), strictjson.Limits{}); err == nil {
				plain, _ := v.Text()
				if clean := r.Text(plain); clean != plain {
					b.WriteString(raw[at:i])
					b.Write(strictjson.AppendString(nil, clean))
					at = end + 1
				}
			}
		}
		i = end
	}
	if at == 0 {
		return raw
	}
	b.WriteString(raw[at:])
	return b.String()
}

// bytes returns bytes without what is redacted. Those of sized keep their number, because they
// may be a part of a binary format.
func (r *Redactor) bytes(data []byte, sized bool) []byte {
	all := r.find(string(data))
	if len(all) == 0 {
		return data
	}
	if !sized {
		return []byte(r.Text(string(data)))
	}
	out := append([]byte(nil), data...)
	for _, s := range all {
		for i := s.from; i < s.to; i++ {
			out[i] = '*'
		}
		copy(out[s.from:s.to], Mark)
	}
	return out
}
