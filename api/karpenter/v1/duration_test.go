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
		"hours keep their text": {json: `"72h"`, want: After(72 * time.Hour), wantText: "72h"},
		"units add up":          {json: `"1h30m"`, want: After(90 * time.Minute), wantText: "1h30m"},
		"zero is not Never":     {json: `"0s"`, want: After(0), wantText: "0s"},
		"Never":                 {json: `"Never"`, want: NillableDuration{}, wantText: "Never"},
		"null keeps Never":      {json: `null`, want: NillableDuration{}, wantText: "Never"},
		"exceeds time.Duration": {json: `"9999999h"`, want: After(Longest), wantText: "9999999h"},
		"exceeds int64":         {json: `"99999999999999999999h"`, want: After(Longest), wantText: "99999999999999999999h"},
		"negative, too long":    {json: `"-9999999h"`, wantError: true},
		"a word":                {json: `"soon"`, wantError: true},
		"lower case never":      {json: `"never"`, wantError: true},
		"a number":              {json: `30`, wantError: true},
		"unit of days":          {json: `"1d"`, wantError: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got NillableDuration
			err := json.Unmarshal([]byte(test.json), &got)
			if (err != nil) != test.wantError {
				t.Fatalf("error %v, want an error: %t", err, test.wantError)
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

// TestNillableDurationIsReplaced checks that decoding replaces the previous value completely.
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

// TestNillableDurationToUnstructured checks that conversion to an unstructured object keeps the text of the manifest.
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

// TestLongDurations checks that durations that the schema accepts can be decoded in every field. One object that cannot
// be decoded would make listing all objects of its kind fail.
func TestLongDurations(t *testing.T) {
	t.Parallel()
	const text = `{"spec":{"disruption":{"consolidateAfter":"99999999999999999999h","budgets":[{"nodes":"1","schedule":"@daily","duration":"999999999999h"}]},
		"template":{"spec":{"expireAfter":"9999999h","terminationGracePeriod":"9999999h"}}}}`
	var pool NodePool
	if err := json.Unmarshal([]byte(text), &pool); err != nil {
		t.Fatal(err)
	}
	spec := pool.Spec.Template.Spec
	for field, got := range map[string]*time.Duration{
		"consolidateAfter": pool.Spec.Disruption.ConsolidateAfter.Duration, "expireAfter": spec.ExpireAfter.Duration,
		"terminationGracePeriod": &spec.TerminationGracePeriod.Duration, "duration": &pool.Spec.Disruption.Budgets[0].Duration.Duration,
	} {
		if got == nil || *got != Longest {
			t.Errorf("%s is %v, want %s", field, got, Longest)
		}
	}
	var claim NodeClaim
	if err := json.Unmarshal([]byte(`{"spec":{"expireAfter":"9999999h","terminationGracePeriod":"1h"}}`),
		&claim); err != nil || claim.Spec.TerminationGracePeriod.Duration != time.Hour {
		t.Errorf("decoded NodeClaim %+v, error %v; want terminationGracePeriod 1h", claim.Spec, err)
	}
	for _, wrong := range []string{`"soon"`, `30`, `"-1x"`} {
		var d Duration
		if err := json.Unmarshal([]byte(wrong), &d); err == nil {
			t.Errorf("%s was decoded as %s, want an error", wrong, d)
		}
	}
	if back, err := json.Marshal(Duration{90 * time.Minute}); err != nil || string(back) != `"1h30m0s"` {
		t.Errorf("90 minutes are encoded as %s, error %v; want \"1h30m0s\"", back, err)
	}
}
