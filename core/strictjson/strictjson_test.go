package strictjson_test

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// nested is an array within an array, depth deep.
func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// keysOf is an object of n keys whose last is named last.
func keysOf(n int, last string) string {
	var b strings.Builder
	b.WriteString("{")
	for i := range n - 1 {
		b.WriteString(`"k` + strconv.Itoa(i) + `":0,`)
	}
	return b.String() + `"` + last + `":0}`
}

func TestCheckTakes(t *testing.T) {
	for name, text := range map[string]string{
		"an object":                                `{"a":1,"b":[true,false,null],"c":{"a":"x"}}`,
		"a value that is no object":                `"hello"`,
		"white space around and inside":            " \t\r\n{ \"a\" : [ 1 , 2 ] }\n",
		"every form of number":                     `[0,-0,1,-12,1.5,0.001,1e9,1E+9,-2.5e-3,123456789012345678901234567890]`,
		"every escape":                             `"\" \\ \/ \b \f \n \r \t \u00e9 \ud83d\ude00"`,
		"half a surrogate pair, as readers do":     `"\ud83d"`,
		"text beyond ASCII":                        `{"ключ":"значение 😀 ` + "\u2028" + `"}`,
		"DEL, which JSON does not forbid":          "\"\x7f\"",
		"a NUL in a value":                         `{"a":"\u0000"}`,
		"the same key in different objects":        `{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`,
		"keys that differ in case":                 `{"a":1,"A":2}`,
		"an empty key":                             `{"":1}`,
		"a nesting of exactly the limit":           nested(64),
		"wide but flat text":                       "[" + strings.Repeat("[],", 1000) + "[]]",
		"an object of many keys":                   keysOf(1000, "last"),
		"a long string that ends on a word border": `"` + strings.Repeat("12345678", 100) + `"`,
	} {
		t.Run(name, func(t *testing.T) {
			if err := strictjson.Check([]byte(text), strictjson.Limits{}); err != nil {
				t.Errorf("got %v, want no error", err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"a duplicate key":                                          {`{"id":1,"a":2,"id":3}`, `duplicate key "id" at byte 14: send each key once`},
		"a duplicate key further in":                               {`{"payload":{"id":1,"id":2}}`, `duplicate key "id" at byte 19 (in payload): send each key once`},
		"a duplicate key deep in":                                  {`{"a":[0,{"b c":{"x":1,"x":2}}]}`, `duplicate key "x" at byte 22 (in a[1]["b c"]): send each key once`},
		"a key that is a duplicate unescaped":                      {`{"id":1,"\u0069d":2}`, `duplicate key "id" at byte 8: send each key once`},
		"a duplicate among many keys":                              {keysOf(500, "k77"), `duplicate key "k77" at byte 4382: send each key once`},
		"a duplicate at the seventeenth":                           {keysOf(17, "k3"), `duplicate key "k3" at byte 119: send each key once`},
		"halves of surrogate pairs as keys, which readers confuse": {`{"\ud800":1,"\udc00":2}`, `duplicate key "�" at byte 12: send each key once`},
		"a NUL in a key":                                           {`{"id\u0000":1}`, `NUL in a key at byte 1: remove it`},
		"nothing":                                                  {"", `not JSON: nothing to read at byte 0: send one JSON value`},
		"only white space":                                         {" \n", `not JSON: nothing to read at byte 2: send one JSON value`},
		"a byte order mark":                                        {"\ufeff{}", `byte order mark at byte 0: send the text without it`},
		"UTF-16":                                                   {"{\x00}\x00", `the text is UTF-16 at byte 0: send it in UTF-8`},
		"UTF-16 with its mark":                                     {"\xff\xfe{\x00}\x00", `the text is UTF-16 at byte 0: send it in UTF-8`},
		"a second value":                                           {`{} {}`, `not JSON: unexpected '{' after the end of the value at byte 3: send one JSON value at a time`},
		"a text cut in an object":                                  {`{"a":{"b"`, `not JSON: the text ends too early at byte 9 (in a): send the whole value`},
		"a text cut in a string":                                   {`{"a":"b`, `not JSON: the text ends too early at byte 7 (in a): send the whole value`},
		"a text cut in an escape":                                  {`"\u00`, `not JSON: the text ends too early at byte 5: send the whole value`},
		"a text cut in a word":                                     {`tru`, `not JSON: the text ends too early at byte 3: send the whole value`},
		"a text cut in a number":                                   {`-`, `not JSON: the text ends too early at byte 1: send the whole value`},
		"a comma before the closing brace":                         {`{"a":1,}`, `not JSON: comma before } at byte 6: remove it`},
		"a comma before the closing bracket":                       {`[1,]`, `not JSON: comma before ] at byte 2: remove it`},
		"a missing comma":                                          {`{"a":1 "b":2}`, `not JSON: unexpected '"' in an object at byte 7: put a comma or } there`},
		"a missing colon":                                          {`{"a" 1}`, `not JSON: unexpected '1' after the key "a" at byte 5: put a colon there`},
		"a key without quotes":                                     {`{a:1}`, `not JSON: unexpected 'a' where a key should be at byte 1: put keys in double quotes`},
		"single quotes":                                            {`{"a":'b'}`, `not JSON: unexpected '\'' at byte 5 (in a): put strings in double quotes`},
		"a comment":                                                {`{"a":// no`, `not JSON: unexpected '/' at byte 5 (in a): remove comments`},
		"Python's True":                                            {`{"a":True}`, `not JSON: unexpected 'T' at byte 5 (in a): write true and false in lower case`},
		"NaN":                                                      {`[NaN]`, `not JSON: unexpected 'N' at byte 1 (in [0]): write null, or a string: JSON has no NaN, Infinity, None or undefined`},
		"a wrong word":                                             {`[nil]`, `not JSON: unexpected 'i' in null at byte 2 (in [0]): write null, or put text in double quotes`},
		"a leading zero":                                           {`[012]`, `not JSON: number with a leading zero at byte 1 (in [0]): remove it, or send a string`},
		"a plus sign":                                              {`[+1]`, `not JSON: unexpected '+' at byte 1 (in [0]): begin a number with a digit or a minus sign`},
		"a number that ends in a dot":                              {`[1.]`, `not JSON: unexpected ']' in a number at byte 3 (in [0]): put a digit there`},
		"an exponent without digits":                               {`[1e]`, `not JSON: unexpected ']' in a number at byte 3 (in [0]): put a digit there`},
		"a line break in a string":                                 {"{\"a\":\"one\ntwo\"}", `not JSON: control character U+000A in a string at byte 9 (in a): write it as \u000a`},
		"an unknown escape":                                        {`"\x41"`, `not JSON: unknown escape in a string at byte 1: use \" \\ \/ \b \f \n \r \t or \u and four digits`},
		"a \\u escape without digits":                              {`"\u12g4"`, `not JSON: \u without four hexadecimal digits at byte 1: write it as \u00e9`},
		"text that is not UTF-8":                                   {"{\"a\":\"abcdefgh\xff\"}", `not JSON: byte 0xff is not UTF-8 at byte 14 (in a): send text in UTF-8`},
		"an overlong form of UTF-8":                                {"\"\xc0\xaf\"", `not JSON: byte 0xc0 is not UTF-8 at byte 1: send text in UTF-8`},
		"a surrogate in UTF-8":                                     {"\"\xed\xa0\x80\"", `not JSON: byte 0xed is not UTF-8 at byte 1: send text in UTF-8`},
		"a character cut by its quote":                             {"\"\xc3\"", `not JSON: byte 0xc3 is not UTF-8 at byte 1: send text in UTF-8`},
		"binary data":                                              {"\x00\x01\x02", `not JSON: unexpected '\x00' at byte 0: send a string, number, object, array, true, false or null there`},
		"bytes that are no character":                              {"\xff\xfd", `not JSON: unexpected byte 0xff at byte 0: send a string, number, object, array, true, false or null there`},
		"a nesting one over the limit":                             {nested(65), `nested more than 64 deep at byte 64 (in ` + strings.Repeat("[0]", 64) + `): send a flatter value`},
	} {
		t.Run(name, func(t *testing.T) {
			err := strictjson.Check([]byte(c.text), strictjson.Limits{})
			var form *strictjson.Error
			if !errors.As(err, &form) || err.Error() != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestCheckHoldsTheLimitsItIsGiven(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		limits strictjson.Limits
		want   string
	}{
		"a text of exactly the limit":    {`[1,2]`, strictjson.Limits{Bytes: 5}, ""},
		"a text of one byte more":        {`[1,23]`, strictjson.Limits{Bytes: 5}, "too large: 6 bytes, the limit is 5"},
		"a depth of exactly the limit":   {`[{"a":[]}]`, strictjson.Limits{Depth: 3}, ""},
		"a depth of one more":            {`[{"a":[{}]}]`, strictjson.Limits{Depth: 3}, "nested more than 3 deep at byte 7 (in [0].a[0]): send a flatter value"},
		"a depth that was left again":    {`[[[]],[[]],[[]]]`, strictjson.Limits{Depth: 3}, ""},
		"a great depth that is allowed":  {nested(10_000), strictjson.Limits{Depth: 1 << 30}, ""},
		"a depth beyond what Go decodes": {nested(10_001), strictjson.Limits{Depth: 1 << 30}, "nested more than 10000 deep at byte 10000 (in ..." + strings.Repeat("[0]", 81) + "): send a flatter value"},
	} {
		t.Run(name, func(t *testing.T) {
			err := strictjson.Check([]byte(c.text), c.limits)
			if got := message(err); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCheckCutsWhatItRepeats(t *testing.T) {
	long := strings.Repeat("é", 100_000)
	err := strictjson.Check([]byte(`{"`+long+`":{"`+long+`":1,"`+long+`":2}}`), strictjson.Limits{})
	if got := message(err); len(got) > 250 || !strings.Contains(got, "...") {
		t.Errorf("got a message of %d bytes (%.80q), want a short one that shows the cut", len(got), got)
	}
}

func TestCheckAllocatesNothingForAnOrdinaryFrame(t *testing.T) {
	data := []byte(frame)
	if got := testing.AllocsPerRun(100, func() { _ = strictjson.Check(data, strictjson.Limits{}) }); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// mustEqualJSON fails unless both values have the same JSON.
func mustEqualJSON(t rapid.TB, got, want any) {
	t.Helper()
	g, _ := json.Marshal(got)
	w, _ := json.Marshal(want)
	if string(g) != string(w) {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}
