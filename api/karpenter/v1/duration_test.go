package v1

import (
	"encoding/json"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

func TestNillableDuration(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		json      string
		want      NillableDuration
		wantText  string
		wantError bool
	}{
		"hours keep their text":     {json: `"72h"`, want: After(72 * time.Hour), wantText: "72h"},
		"units add up":              {json: `"1h30m"`, want: After(90 * time.Minute), wantText: "1h30m"},
		"zero is not never":         {json: `"0s"`, want: After(0), wantText: "0s"},
		"never":                     {json: `"Never"`, want: NillableDuration{}, wantText: "Never"},
		"nothing is never":          {json: `null`, want: NillableDuration{}, wantText: "Never"},
		"a word":                    {json: `"soon"`, wantError: true},
		"never is written one way":  {json: `"never"`, wantError: true},
		"a number":                  {json: `30`, wantError: true},
		"days are not Go's to read": {json: `"1d"`, wantError: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got NillableDuration
			err := json.Unmarshal([]byte(test.json), &got)
			if (err != nil) != test.wantError {
				t.Fatalf("error %v, want one: %t", err, test.wantError)
			}
			if err != nil {
				return
			}
			if !got.Equal(test.want) {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got.String() != test.wantText {
				t.Errorf("text %q, want %q", got, test.wantText)
			}
			back, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if string(back) != `"`+test.wantText+`"` {
				t.Errorf("written as %s, want %q", back, test.wantText)
			}
		})
	}
}

// TestNillableDurationIsReplaced: reading into a value that held something else leaves nothing of it.
func TestNillableDurationIsReplaced(t *testing.T) {
	t.Parallel()
	var d NillableDuration
	for _, text := range []string{`"72h"`, `"Never"`} {
		if err := json.Unmarshal([]byte(text), &d); err != nil {
			t.Fatal(err)
		}
	}
	if !d.IsNever() || d.String() != Never {
		t.Errorf("got %s, want Never", d)
	}
}

// TestNillableDurationToUnstructured: typed objects become unstructured ones with the text of the manifest.
func TestNillableDurationToUnstructured(t *testing.T) {
	t.Parallel()
	var spec NodeClaimTemplateSpec
	if err := json.Unmarshal([]byte(`{"expireAfter":"72h"}`), &spec); err != nil {
		t.Fatal(err)
	}
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&spec)
	if err != nil {
		t.Fatal(err)
	}
	if object["expireAfter"] != "72h" {
		t.Errorf("expireAfter is %#v, want 72h", object["expireAfter"])
	}
}
