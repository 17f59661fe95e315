package pack

import (
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestAResultBecomesTextDataFilesAndWhatIsLeft(t *testing.T) {
	for in, want := range map[string]string{
		`{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`:                                                `{"text":"a\nb"}`,
		`{"content":[{"type":"text","text":"{ \"n\": 1 }"}],"structuredContent":{"n":1}}`:                                    `{"data":{"n":1}}`,
		`{"content":[{"type":"text","text":"one"}],"structuredContent":{"n":1.0}}`:                                           `{"text":"one","data":{"n":1.0}}`,
		`{"content":[],"structuredContent":null}`:                                                                            `{"data":null}`,
		`{"content":[{"type":"image","data":"aGk=","mimeType":"image/jpeg"},{"type":"audio","data":"aGk=","mimeType":"x"}]}`: `{"files":[{"name":"image-1.jpg","media_type":"image/jpeg","data":"aGk="},{"name":"audio-2","media_type":"x","data":"aGk="}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"file:///a/b%20c.bin","blob":"aGk="}}]}`:                           `{"files":[{"name":"b c.bin","data":"aGk="}]}`,
		`{"content":[{"type":"resource","resource":{"uri":"x:y","text":"hi"}},{"type":"new","z":1}]}`:                        `{"content":[{"type":"resource","resource":{"uri":"x:y","text":"hi"}},{"type":"new","z":1}]}`,
		`{"content":"none"}`: `{"text":""}`,
		`{"content":[{"type":"text","text":"why"}],"isError":true}`:     "internal: why",
		`{"content":[],"isError":true,"structuredContent":{"code": 7}}`: `internal: {"code":7}`,
		`{"isError":true}`: "internal: the tool failed and does not say why",
		`[]`:               "internal: the server's result is []: want an object with content",
	} {
		got, fault := readResult(strictjson.ParseValid([]byte(in)))
		if text := string(got); fault == nil && text != want || fault != nil && fault.Error() != want {
			t.Errorf("%s: got %s and %v, want %s", in, got, fault, want)
		}
	}
}
