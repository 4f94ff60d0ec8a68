package loop

// Breaker limits how many orphans are removed at once. It opens if there are more than Count orphans, and they are also
// more than Share of all objects of their kind. In that case the data from EC2 or the API server is probably wrong.
type Breaker struct {
	Count int     // number of orphans that may always be removed; zero: config.BreakerCount
	Share float64 // share of all objects of the kind, from 0 to 1; zero: config.BreakerShare
}
