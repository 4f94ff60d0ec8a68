package catalog

import (
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/joiner-sh/joiner/internal/model/resources"
)

const testImage = "ami-0123456789abcdef0"

// size returns the amounts of a node. Memory is in Mi, disk in bytes.
func size(memoryMi, disk, pods int64) resources.Amounts {
	return resources.Amounts{Memory: memoryMi * mib, EphemeralStorage: disk, Pods: pods}
}

// TestBuildWithMeasured: Build gives a type that was measured exactly the measured amounts.
func TestBuildWithMeasured(t *testing.T) {
	t.Parallel()
	m := Measured{
		Memory: 7_842_048 << 10,
		Disk:   []Correction{{20 << 30, 20_893_676 << 10}},
		Pods:   []Correction{{29, 110}, {58, 30}},
	}
	for name, c := range map[string]struct {
		set                Settings
		memory, disk, pods int64 // capacity
		overheadMi         int64
	}{
		"measured":             {Settings{}, 7_842_048 << 10, 20_893_676 << 10, 110, 574 + 100},
		"another volume":       {Settings{Volumes: []Volume{{Device: "/dev/xvda", Bytes: 80 << 30}}}, 7_842_048 << 10, 80 << 30, 110, 574 + 100},
		"maxPods not measured": {Settings{MaxPods: ptr[int64](40)}, 7_842_048 << 10, 20_893_676 << 10, 40, 574 + 100},
		"maxPods measured":     {Settings{MaxPods: ptr[int64](58)}, 7_842_048 << 10, 20_893_676 << 10, 30, 574 + 100},
		"reserve by maxPods":   {Settings{Family: Bottlerocket}, 7_842_048 << 10, 20_893_676 << 10, 110, 11*110 + 255 + 100},
		"overhead is not used": {Settings{MemoryOverhead: ptr(0.5)}, 7_842_048 << 10, 20_893_676 << 10, 110, 574 + 100},
	} {
		c.set.Measured = m
		typ := Build(factsOf(t, "m5.large"), c.set, "r")
		if want := (resources.Amounts{CPU: 2000, Memory: c.memory, EphemeralStorage: c.disk,
			Pods: c.pods}).With(ResourcePodENI, 9); !typ.Capacity.Equal(want) {
			t.Errorf("%s: capacity %v, want %v", name, typ.Capacity, want)
		}
		if got := typ.Capacity.Memory - typ.Allocatable.Memory; got != c.overheadMi*mib {
			t.Errorf("%s: the memory overhead is %d Mi, want %d", name, got/mib, c.overheadMi)
		}
		if typ.Allocatable.Pods != c.pods {
			t.Errorf("%s: %d pods allocatable, want %d", name, typ.Allocatable.Pods, c.pods)
		}
	}
}

// TestAdd adds several reports for one type and image.
func TestAdd(t *testing.T) {
	t.Parallel()
	const gi = 1 << 30
	m := Measurements{}
	for _, step := range []struct {
		name               string
		expected, reported resources.Amounts
		day                Day
		changes            bool
		want               Measured
	}{
		{"nothing reported", size(7577, 20*gi, 29), size(0, 0, 0), 1, false, Measured{}},
		{"the first", size(7577, 20*gi, 29), size(7700, 19*gi, 110), 100, true,
			Measured{7700 * mib, []Correction{{20 * gi, 19 * gi}}, []Correction{{29, 110}}, 100}},
		{"launched before the first report", size(7577, 20*gi, 29), size(7700, 19*gi, 110), 101, false,
			Measured{7700 * mib, []Correction{{20 * gi, 19 * gi}}, []Correction{{29, 110}}, 100}},
		{"launched after the first report", size(7700, 19*gi, 110), size(7700, 19*gi, 110), 106, false,
			Measured{7700 * mib, []Correction{{20 * gi, 19 * gi}}, []Correction{{29, 110}}, 100}},
		{"reported again after a week", size(7700, 19*gi, 110), size(7700, 19*gi, 110), 107, true,
			Measured{7700 * mib, []Correction{{20 * gi, 19 * gi}}, []Correction{{29, 110}}, 107}},
		{"less of each resource", size(7700, 19*gi, 110), size(7699, 18*gi, 58), 108, true,
			Measured{7699 * mib, []Correction{{20 * gi, 18 * gi}}, []Correction{{29, 58}}, 107}},
		{"more of each resource", size(7699, 18*gi, 58), size(7800, 20*gi, 250), 108, false,
			Measured{7699 * mib, []Correction{{20 * gi, 18 * gi}}, []Correction{{29, 58}}, 107}},
		{"another volume", size(7699, 10*gi, 58), size(7699, 9*gi, 58), 108, true,
			Measured{7699 * mib, []Correction{{10 * gi, 9 * gi}, {20 * gi, 18 * gi}}, []Correction{{29, 58}}, 107}},
		{"an impossible amount of memory", size(100, 0, 0), size(201, 0, 0), 108, false,
			Measured{7699 * mib, []Correction{{10 * gi, 9 * gi}, {20 * gi, 18 * gi}}, []Correction{{29, 58}}, 107}},
	} {
		if got := m.Add(Report{testImage, "m5.large", step.expected, step.reported, step.day}); got != step.changes {
			t.Errorf("%s: Add returns %t, want %t", step.name, got, step.changes)
		}
		if diff := cmp.Diff(step.want, m[Sample{testImage, "m5.large"}]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
	if m.Add(Report{Type: "m5.large", Expected: size(1, 1, 1), Reported: size(1, 1, 1)}) {
		t.Error("a report without image changes the measurements")
	}
	for i := range int64(2 * maxCorrections) {
		m.Add(Report{testImage, "m5.xlarge", size(1, 1+i, 1), size(1, 1, 1), 1})
	}
	if n := len(m[Sample{testImage, "m5.xlarge"}].Disk); n > maxCorrections {
		t.Errorf("%d corrections of one type, want at most %d", n, maxCorrections)
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a := Measurements{
		{"ami-1", "m5.large"}: {Memory: 10, Disk: []Correction{{5, 4}, {9, 8}}, Seen: 3},
		{"ami-1", "t3.nano"}:  {Memory: 1, Seen: 3},
	}
	b := Measurements{
		{"ami-1", "m5.large"}: {Memory: 9, Disk: []Correction{{5, 3}, {7, 7}}, Pods: []Correction{{29, 110}}, Seen: 1},
		{"ami-2", "m5.large"}: {Pods: []Correction{{29, 20}}, Seen: 4},
	}
	want := Measurements{
		{"ami-1", "m5.large"}: {Memory: 9, Disk: []Correction{{5, 3}, {7, 7}, {9, 8}}, Pods: []Correction{{29, 110}}, Seen: 3},
		{"ami-1", "t3.nano"}:  {Memory: 1, Seen: 3},
		{"ami-2", "m5.large"}: {Pods: []Correction{{29, 20}}, Seen: 4},
	}
	before := a.Encode(1 << 20)
	for name, got := range map[string]Measurements{"a with b": a.Merge(b), "b with a": b.Merge(a), "again": a.Merge(b).Merge(b).Merge(a)} {
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(before, a.Encode(1<<20)); diff != "" {
		t.Errorf("Merge has changed a (-before +after):\n%s", diff)
	}
	got := a.Merge(b)
	if !got.Forget(4) || got.Forget(4) || len(got) != 1 {
		t.Errorf("after Forget(4) twice, the measurements are %v; want one sample, and a change only the first time", got)
	}
}

func TestMeasuredText(t *testing.T) {
	t.Parallel()
	day := DayOf(time.Date(2026, 11, 21, 23, 59, 59, 0, time.UTC))
	m := Measurements{
		{testImage, "m5.large"}: {Memory: 7_842_048 << 10, Disk: []Correction{{20 << 30, 20_893_676 << 10}},
			Pods: []Correction{{29, 110}, {58, 30}}, Seen: day},
		{testImage, "c5.large"}: {Memory: 4_001_001, Seen: day - 1},
		{"ami-2", "m5.large"}:   {Disk: []Correction{{73_242_187_500, 72_265_625 << 10}}, Seen: day - 2},
	}
	text := m.Encode(1 << 20)
	want := map[string]string{
		testImage: "c5.large memory=4001001 seen=2026-11-20\n" +
			"m5.large memory=7842048Ki disk=20Gi:20893676Ki pods=29:110 pods=58:30 seen=2026-11-21\n",
		"ami-2": "m5.large disk=73242187500:72265625Ki seen=2026-11-19\n",
	}
	if diff := cmp.Diff(want, text); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	back, err := DecodeMeasurements(text)
	if diff := cmp.Diff(m, back); err != nil || diff != "" {
		t.Errorf("read back: %v (-want +got):\n%s", err, diff)
	}
	// Four invalid lines, a blank one, and a valid one.
	text["ami-3"] = "m5.large memory=0\nm5.large disk=3\nt3.nano memory=5 speed=1\n\nt3.micro memory=6 seen=yesterday\nt3.small memory=6\n"
	back, err = DecodeMeasurements(text)
	if n := strings.Count(fmt.Sprint(err), "read measurement of"); n != 4 || len(back) != 4 || back[Sample{"ami-3", "t3.small"}].Memory != 6 {
		t.Errorf("read %v; %d errors: %v; want 4 samples and 4 errors", back, n, err)
	}
}

// TestMeasuredTextIsBounded: the samples with the earliest days are left out first, and the remaining text can be
// parsed.
func TestMeasuredTextIsBounded(t *testing.T) {
	t.Parallel()
	m := Measurements{}
	for i := range 500 {
		m[Sample{fmt.Sprintf("ami-%d", i%7), fmt.Sprintf("m5.%dxlarge", i)}] = Measured{Memory: int64(1 + i), Seen: Day(i)}
	}
	for _, limit := range []int{0, 40, 1000, 10_000, 1 << 20} {
		text, length := m.Encode(limit), 0
		for image, lines := range text {
			length += len(image) + len(lines)
		}
		back, err := DecodeMeasurements(text)
		if err != nil || length > limit {
			t.Fatalf("limit %d: %d bytes, %v; want text within the limit", limit, length, err)
		}
		for sample := range maps.Keys(m) {
			isLate := int(m[sample].Seen) >= 500-len(back) // the days are 0 to 499
			if _, kept := back[sample]; kept != isLate {
				t.Errorf("limit %d: %d samples are kept; is that of day %d kept: %t, want %t",
					limit, len(back), m[sample].Seen, kept, !kept)
			}
		}
		if limit == 1<<20 && len(back) != 500 || limit == 1000 && len(back) < 15 {
			t.Errorf("limit %d: %d samples are kept, want all 500 within 1 MiB, 15 or more within 1000 bytes",
				limit, len(back))
		}
	}
}
