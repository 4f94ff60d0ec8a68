package loop

// Breaker limits how many objects a loop removes at once: orphans (package gc), or nodes that drift because of a change
// in AWS (package driftcheck). It opens if the objects exceed both limits. In that case the data from EC2 or the API
// server, or the change in AWS, is probably wrong. A field that is zero has the default of the package that uses it.
type Breaker struct {
	Count int     // limit for the number of objects; in package driftcheck, the breaker also opens at exactly this number
	Share float64 // limit for the share of all objects of the kind, from 0 to 1
}
