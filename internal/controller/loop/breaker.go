package loop

// Breaker limits how many orphans are removed at once. It opens if there are more than Count orphans, and they are more than Share of all
// objects of their kind. Then our view is probably wrong.
type Breaker struct {
	Count int     // zero: config.BreakerCount
	Share float64 // from 0 to 1; zero: config.BreakerShare
}
