// Package nodeclaim reconciles a NodeClaim from its creation to its deletion: launch, registration, initialization, repair,
// replacement, drain and termination.
//
// In: a NodeClaim, its Node and its instance.
// Out: launches, terminations, statuses, evictions.
// Never: choosing the instance type.
package nodeclaim
