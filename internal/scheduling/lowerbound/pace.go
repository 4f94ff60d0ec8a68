package lowerbound

// pace is the speed of a share, and the direction of its last change.
type pace struct {
	speed float32 // from 0.02 to 1: 10 % more after a change in the same direction, 30 % less after a reversal
	up    bool    // whether the share grew
}

// factor returns the factor by which a share is multiplied, and adapts the pace. used is the load of the share's
// resource divided by the mean load of the kind's resources. If used is above 1, the share grows; below 1, the share
// shrinks. used is limited to 1/maxShiftFactor … maxShiftFactor. The exponent of 0.7 at full speed damps oscillation.
func (p *pace) factor(used float64) float64 {
	if up := used > 1; up == p.up {
		p.speed = min(p.speed*1.1, 1)
	} else {
		p.up, p.speed = up, max(p.speed*0.7, 0.02)
	}
	return power(min(max(used, 1.0/maxShiftFactor), maxShiftFactor), 0.7*float64(p.speed))
}

// power returns x to the power of y, with a relative error of a few 1e-5, for x from 1/2 to 2 and y from 0 to 1.
func power(x, y float64) float64 {
	t := (x - 1) / (x + 1)
	z := 2 * y * t * (1 + t*t*(1.0/3+t*t/5))
	return 1 + z*(1+z*(1.0/2+z*(1.0/6+z/24)))
}
