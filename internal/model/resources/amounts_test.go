package resources

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseAndFormat(t *testing.T) {
	t.Parallel()
	for text, c := range map[string]struct {
		resource string
		want     int64
		wantText string
	}{
		"1":                    {CPU, 1000, "1"},
		"100m":                 {CPU, 100, "100m"},
		"0.1":                  {CPU, 100, "100m"},
		"1u":                   {CPU, 1, "1m"}, // rounds up: a small request must not become zero
		"2Gi":                  {Memory, 2 << 30, "2Gi"},
		"1536Mi":               {Memory, 1536 << 20, "1536Mi"},
		"1023Ti":               {Memory, 1023 << 40, "1023Ti"},
		"1024Ti":               {Memory, 1 << 50, "1Pi"},
		"7Ei":                  {EphemeralStorage, 7 << 60, "7Ei"},
		"1G":                   {Memory, 1e9, "1000000000"},
		"1e3":                  {Memory, 1000, "1000"},
		"128974848m":           {Memory, 128975, "128975"},
		"9999999E":             {Memory, math.MaxInt64, "9223372036854775807"},
		"-1":                   {"nvidia.com/gpu", -1, "-1"},
		"9223372036854775807k": {"nvidia.com/gpu", math.MaxInt64, "9223372036854775807"},
	} {
		got, err := Parse(c.resource, text)
		if err != nil || got != c.want {
			t.Errorf("Parse(%s, %q) = %d, %v; want %d", c.resource, text, got, err, c.want)
		}
		if s := Format(c.resource, got); s != c.wantText {
			t.Errorf("Format(%s, %d) = %q, want %q", c.resource, got, s, c.wantText)
		}
	}
	for _, text := range []string{"", "x", "1/3", "0x10", "1e999999999", "1 Gi", "Gi", "1Gi2"} {
		if got, err := Parse(Memory, text); err == nil {
			t.Errorf("Parse(%q) = %d, want an error", text, got)
		}
	}
}

func TestArithmetic(t *testing.T) {
	t.Parallel()
	a := Amounts{CPU: 1000, Memory: 100}.With("nvidia.com/gpu", 2).With("a/b", 1)
	b := Amounts{CPU: 300, Pods: 1}.With("nvidia.com/gpu", 2).With("z/z", 4)
	want := Amounts{CPU: 700, Memory: 100, Pods: -1, Extended: []Extended{{"a/b", 1}, {"z/z", -4}}}
	if diff := cmp.Diff(want, a.Sub(b)); diff != "" {
		t.Errorf("Sub (-want +got):\n%s", diff)
	}
	if got := a.Sub(b).Add(b); !got.Equal(a) {
		t.Errorf("(a-b)+b = %v, want %v", got, a)
	}
	if got := a.With("a/b", 0).Of("a/b"); got != 0 {
		t.Errorf("after With(a/b, 0), the amount is %d, want 0", got)
	}
	if a.Of("a/b") != 1 {
		t.Error("With has changed its receiver")
	}
}

func TestFits(t *testing.T) {
	t.Parallel()
	room := Amounts{CPU: 1000, Memory: -5, Pods: 3}
	for name, c := range map[string]struct {
		requests Amounts
		lacking  []string // the result of Lacking
	}{
		"exactly":                         {Amounts{CPU: 1000, Pods: 3}, nil},
		"no memory, and negative room":    {Amounts{CPU: 1}, nil},
		"1m CPU too much":                 {Amounts{CPU: 1001}, []string{CPU}},
		"some memory, and negative room":  {Amounts{Memory: 1, CPU: 2000}, []string{CPU, Memory}},
		"a device that the node lacks":    {Amounts{}.With("nvidia.com/gpu", 1), []string{"nvidia.com/gpu"}},
		"0 of a device that a node lacks": {Amounts{Extended: []Extended{{"nvidia.com/gpu", 0}}}, nil},
	} {
		if got := c.requests.Fits(room); got != (c.lacking == nil) {
			t.Errorf("%s: Fits = %t, want %t", name, got, !got)
		}
		if diff := cmp.Diff(c.lacking, c.requests.Lacking(room)); diff != "" {
			t.Errorf("%s: Lacking (-want +got):\n%s", name, diff)
		}
	}
}

// TestArithmeticDoesNotWrap: sums, differences and products saturate at the limits of int64.
func TestArithmeticDoesNotWrap(t *testing.T) {
	t.Parallel()
	const most, least = math.MaxInt64, math.MinInt64
	for _, c := range []struct{ x, y, sum, difference, product int64 }{
		{2, 3, 5, -1, 6},
		{-2, 3, 1, -5, -6},
		{most, 1, most, most - 1, most},
		{most, most, most, 0, most},
		{most, -1, most - 1, most, -most},
		{least, least, least, 0, most},
		{least, 1, least + 1, least, least},
		{least, -1, least, least + 1, most},
		{0, least, least, most, 0},
		{-1, least, least, most, most},
		{1 << 32, 1 << 31, 1<<32 + 1<<31, 1 << 31, most},
		{-1 << 32, 1 << 31, -1<<32 + 1<<31, -1<<32 - 1<<31, least},
		{most / 2, 2, most/2 + 2, most/2 - 2, most - 1},
	} {
		a := Amounts{Memory: c.x}.With("nvidia.com/gpu", c.x)
		b := Amounts{Memory: c.y}.With("nvidia.com/gpu", c.y)
		for name, got := range map[string][2]Amounts{
			"+": {a.Add(b), Amounts{Memory: c.sum}.With("nvidia.com/gpu", c.sum)},
			"-": {a.Sub(b), Amounts{Memory: c.difference}.With("nvidia.com/gpu", c.difference)},
			"*": {a.Times(c.y), Amounts{Memory: c.product}.With("nvidia.com/gpu", c.product)},
		} {
			if !got[0].Equal(got[1]) {
				t.Errorf("%d %s %d = %v, want %v", c.x, name, c.y, got[0], got[1])
			}
		}
	}
}

func TestBulk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a    Amounts
		want float64
	}{
		{Amounts{}, 0},
		{Amounts{CPU: 1500, Memory: 2 << 30}, 2},
		{Amounts{CPU: 500, Memory: 8 << 30, Pods: 1}, 2.5},
	} {
		if got := c.a.Bulk(); got != c.want {
			t.Errorf("the bulk of %s is %v, want %v", c.a, got, c.want)
		}
	}
}
