package drift

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type inner struct {
	Words []string
	Size  *int32 `json:"size,omitempty"`
}

type sample struct {
	Name    string            `json:"name"`
	Labels  map[string]string `json:"labels,omitempty"`
	Inner   *inner            `json:"inner"`
	Expiry  time.Duration
	Ignored string            `hash:"ignore"`
	Periods map[string]string `json:"periods" hash:"duration"`
	hidden  int
}

func mustHash(t *testing.T, v any) string {
	t.Helper()
	out, err := Hash(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestHashChanges(t *testing.T) {
	t.Parallel()
	four := int32(4)
	base := func() sample {
		return sample{
			Name: "a", Labels: map[string]string{"x": "1", "y": "2"}, Inner: &inner{Words: []string{"p", "q"}},
			Expiry: time.Minute, Periods: map[string]string{"soft": "90s"},
		}
	}
	before := mustHash(t, base())
	for name, c := range map[string]struct {
		change func(*sample)
		same   bool
	}{
		"nothing":                {func(*sample) {}, true},
		"ignored field":          {func(s *sample) { s.Ignored = "x" }, true},
		"unexported field":       {func(s *sample) { s.hidden = 3 }, true},
		"order of a list":        {func(s *sample) { s.Inner.Words = []string{"q", "p"} }, true},
		"spelling of a duration": {func(s *sample) { s.Periods["soft"] = "1m30s" }, true},
		"value":                  {func(s *sample) { s.Name = "b" }, false},
		"a label":                {func(s *sample) { s.Labels["x"] = "2" }, false},
		"swapped labels":         {func(s *sample) { s.Labels = map[string]string{"x": "2", "y": "1"} }, false},
		"removed word":           {func(s *sample) { s.Inner.Words = []string{"p"} }, false},
		"added number":           {func(s *sample) { s.Inner.Size = &four }, false},
		"a duration":             {func(s *sample) { s.Expiry = time.Hour }, false},
		"changed duration":       {func(s *sample) { s.Periods["soft"] = "91s" }, false},
		"removed struct":         {func(s *sample) { s.Inner = nil }, false},
	} {
		s := base()
		c.change(&s)
		if got := mustHash(t, s); (got == before) != c.same {
			t.Errorf("%s: the hash was %s and is %s; want an equal hash: %t", name, before, got, c.same)
		}
	}
	if _, err := Hash(sample{Inner: nil, Name: "a"}); err != nil {
		t.Error(err)
	}
	if _, err := Hash(make(chan int)); err == nil {
		t.Error("Hash of a channel returns no error")
	}
}

func TestPartsNameWhatChanged(t *testing.T) {
	t.Parallel()
	a, err := Parts(sample{Name: "a", Labels: map[string]string{"x": "1"}, Ignored: "1"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := Parts(&sample{Name: "a", Labels: map[string]string{"x": "2"}, Ignored: "2", Inner: &inner{}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"inner", "labels"}, changedParts(a, b)); diff != "" {
		t.Errorf("the parts that differ (-want +got):\n%s", diff)
	}
}
