package strictjson_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/core/strictjson"
)

type keeper struct {
	ID   string          `json:"id"`
	Kept json.RawMessage `json:"kept"`
	More json.RawMessage `json:"more,omitempty"`
	keeperInner
}

type keeperInner struct {
	Inner json.RawMessage `json:"inner"`
}

// What a field keeps as it is, is the same whether it is short or long.
func TestDecodeKeepsLongValuesAsTheyAre(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		long := func(name string) string {
			form := rapid.SampledFrom([]string{`"%s"`, `{"a": "%s", "n":1e3}`, ` [ "%s" ] `}).Draw(t, name)
			return fmt.Sprintf(form, strings.Repeat(`é\n`, rapid.SampledFrom([]int{0, 5, 250, 260, 900}).Draw(t, "length")))
		}
		text := fmt.Sprintf(`{"kept":%s,"x":%s, "id":"a","inner":%s ,"more":%s}`, long("kept"), long("x"), long("inner"), long("more"))
		var want, got keeper
		if err := json.Unmarshal([]byte(text), &want); err != nil {
			t.Fatal(err)
		}
		data := []byte(text)
		if err := strictjson.Decode(data, strictjson.Limits{}, &got); err != nil {
			t.Fatalf("%s: got %v, want no error", text, err)
		}
		clear(data) // nothing of it is shared
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(keeper{})); diff != "" {
			t.Fatalf("decoded otherwise (-want +got):\n%s", diff)
		}
	})
}
