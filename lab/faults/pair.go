package faults

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Pair is two faults that are played at the same time.
type Pair struct {
	FaultA, FaultB Fault // in the order of injection

	BothFound  bool          // doctor found both faults
	FoundAfter time.Duration // from the injection of the second fault until doctor found both
	Err        error         // reason why doctor did not find both faults; nil if it found both
}

// Pairs selects n random pairs of faults that can be played in parallel: they have different checks and the same
// authentication mode, and neither is IsExclusive or Slow. The same seed selects the same pairs. The result can have
// fewer than n pairs, and the same two faults in both orders.
func Pairs(faults []Fault, n int, seed uint64) []Pair {
	random := rand.New(rand.NewPCG(seed, 0))
	candidates := slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return f.IsExclusive || f.Slow })
	var out []Pair
	for range 20 * n { // most attempts succeed; the limit is for fewer than n pairs
		if len(out) == n || len(candidates) < 2 {
			break
		}
		a, b := candidates[random.IntN(len(candidates))], candidates[random.IntN(len(candidates))]
		isDuplicate := slices.ContainsFunc(out, func(p Pair) bool { return p.FaultA.Name == a.Name && p.FaultB.Name == b.Name })
		if a.Check != b.Check && a.AuthMode == b.AuthMode && !isDuplicate {
			out = append(out, Pair{FaultA: a, FaultB: b})
		}
	}
	return out
}

// PlayPair plays both faults at the same time, runs doctor until it finds both, and cleans up.
func (s *Stage) PlayPair(ctx context.Context, p Pair) Pair {
	s.sceneCount++
	scenes := []*Scene{NewScene(s.Lab, sceneName(s.sceneCount)), NewScene(s.Lab, sceneName(s.sceneCount)+"-b")}
	p.Err = s.playPair(ctx, scenes, &p)
	cleanupCtx := context.WithoutCancel(ctx)
	for _, scene := range scenes {
		p.Err = errors.Join(p.Err, scene.revert(cleanupCtx), scene.remove(cleanupCtx))
	}
	for _, scene := range scenes {
		p.Err = errors.Join(p.Err, scene.waitGone(cleanupCtx))
	}
	return p
}

// playPair plays each fault in its scene, and sets BothFound and FoundAfter of p.
func (s *Stage) playPair(ctx context.Context, scenes []*Scene, p *Pair) error {
	for i, f := range []Fault{p.FaultA, p.FaultB} {
		if err := s.Setup(ctx, scenes[i], f, f.NeedsInstance); err != nil {
			return err
		}
	}
	started := time.Now()
	err := scenes[0].until(ctx, Limit, "both faults to be found", func(ctx context.Context) (bool, error) {
		all, err := s.runDoctor(ctx)
		if err != nil {
			return false, err
		}
		for _, f := range []Fault{p.FaultA, p.FaultB} {
			if !slices.ContainsFunc(all, f.matches) {
				return false, fmt.Errorf("%s is not among the findings; the first finding is %s", f.Name, describeFirst(all))
			}
		}
		return true, nil
	})
	p.BothFound, p.FoundAfter = err == nil, time.Since(started)
	return err
}
