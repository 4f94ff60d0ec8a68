package lifecycle

import (
	"testing"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

func TestShortfall(t *testing.T) {
	t.Parallel()
	requested := resources.Amounts{}.With(resources.CPU, 1000).With(resources.Memory, 1<<30).With("nvidia.com/gpu", 1)
	promised := resources.Amounts{}.With(resources.CPU, 4000).With(resources.Memory, 10<<30).With("nvidia.com/gpu", 8)
	for name, c := range map[string]struct {
		actual resources.Amounts
		want   string
	}{
		"as promised":           {promised, ""},
		"nine tenths":           {promised.With(resources.Memory, 9<<30), ""},
		"less than nine tenths": {promised.With(resources.Memory, 9<<30-1), resources.Memory},
		"a device is missing":   {promised.With("nvidia.com/gpu", 7), "nvidia.com/gpu"},
		"more":                  {promised.Add(promised), ""},
		"all are missing, the first by name is returned": {resources.Amounts{}, resources.CPU},
	} {
		if got := Shortfall(requested, promised, c.actual); got != c.want {
			t.Errorf("%s: shortfall of %q, want %q", name, got, c.want)
		}
	}
	if got := Shortfall(resources.Amounts{}, promised, resources.Amounts{}); got != "" {
		t.Errorf("shortfall of %s, which the claim does not request; want none", got)
	}
}
