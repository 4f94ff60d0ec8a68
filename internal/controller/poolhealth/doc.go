// Package poolhealth decides whether a NodePool may launch. It holds the backoff after launches that failed or
// instances that did not join, the canary launch after a fix, and the results of recent launches. It also holds the
// backoff of pods that a launched node did not make schedulable.
//
// In: the results of launches and registrations.
// Out: whether the pool may launch, with the reason.
// Never: launching an instance.
package poolhealth
