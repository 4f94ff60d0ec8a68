package resources

import (
	"slices"
	"testing"
)

// TestVector: an amount of 0 or less always fits, and SubtractTimes with a negative number reverses SubtractTimes.
func TestVector(t *testing.T) {
	t.Parallel()
	room := Vector{4, 8, -1}
	for _, c := range []struct {
		ask     Vector
		count   int // the result of FitCount with limit 7
		lacking int // the result of FirstLacking
	}{
		{Vector{1, 2, 0}, 4, -1},
		{Vector{0, 3, 0}, 2, -1},
		{Vector{5, 0, 0}, 0, 0},
		{Vector{1, 9, 0}, 0, 1},
		{Vector{0, 0, 1}, 0, 2},
		{Vector{0, 0, 0}, 7, -1},
		{Vector{-2, 0, 0}, 7, -1},
	} {
		if got := c.ask.FitCount(room, 7); got != c.count {
			t.Errorf("%v fits %d times into %v, want %d", c.ask, got, room, c.count)
		}
		if got := c.ask.FirstLacking(room); got != c.lacking {
			t.Errorf("the first resource in which %v exceeds %v is %d, want %d", c.ask, room, got, c.lacking)
		}
		if got, want := c.ask.Fits(room), c.lacking < 0; got != want {
			t.Errorf("%v fits into %v: %t, want %t", c.ask, room, got, want)
		}
		left := room.Clone()
		left.SubtractTimes(c.ask, 3)
		left.SubtractTimes(c.ask, -3)
		if !slices.Equal(left, room) {
			t.Errorf("%v subtracted 3 times, then -3 times: %v, want %v", c.ask, left, room)
		}
	}
}

// TestSetRemaining: a CSI driver without a limit on the node attaches any number of volumes.
func TestSetRemaining(t *testing.T) {
	t.Parallel()
	const ebs, other = AttachableVolumes + "ebs.csi.aws.com", AttachableVolumes + "other"
	d := Dimensions{CPU, ebs, other}
	total := Amounts{CPU: 4000, Extended: []Extended{{Name: ebs, Value: 25}}}
	used := Amounts{CPU: 1000, Extended: []Extended{{Name: ebs, Value: 20}, {Name: other, Value: 9}}}
	got := make(Vector, len(d))
	d.SetRemaining(got, total, used)
	if want := (Vector{3000, 5, Unlimited}); !slices.Equal(got, want) {
		t.Errorf("%v remain, want %v", got, want)
	}
}

// TestVectorsIn: appending to a vector does not change the next one, although both use the same memory.
func TestVectorsIn(t *testing.T) {
	t.Parallel()
	cells := []int64{1, 2, 3, 4, 5, 6}
	vectors := VectorsIn(cells, 3)
	_ = append(vectors[0], 9)
	vectors[1][0] = 7
	if want := []int64{1, 2, 7, 4, 5, 6}; !slices.Equal(cells, want) {
		t.Errorf("cells are %v, want %v", cells, want)
	}
	if got := VectorsIn(nil, 0); len(got) != 0 {
		t.Errorf("VectorsIn(nil, 0) returns %v, want no vectors", got)
	}
}
