package lifecycle

import (
	"testing"

	"github.com/joiner-sh/joiner/capacity"
)

func TestShortfall(t *testing.T) {
	t.Parallel()
	asked := capacity.Amounts{}.With(capacity.CPU, 1000).With(capacity.Memory, 1<<30).With("nvidia.com/gpu", 1)
	promised := capacity.Amounts{}.With(capacity.CPU, 4000).With(capacity.Memory, 10<<30).With("nvidia.com/gpu", 8)
	for name, c := range map[string]struct {
		has  capacity.Amounts
		want string
	}{
		"as promised":         {promised, ""},
		"nine tenths":         {promised.With(capacity.Memory, 9<<30), ""},
		"less":                {promised.With(capacity.Memory, 9<<30-1), capacity.Memory},
		"a device is missing": {promised.With("nvidia.com/gpu", 7), "nvidia.com/gpu"},
		"more":                {promised.Add(promised), ""},
		"the first by name":   {capacity.Amounts{}, capacity.CPU},
	} {
		if got := Shortfall(asked, promised, c.has); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	if got := Shortfall(capacity.Amounts{}, promised, capacity.Amounts{}); got != "" {
		t.Errorf("%s is missed, which nobody asked for", got)
	}
}
