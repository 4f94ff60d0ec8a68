// Package poolhealth decides whether a NodePool may launch: the backoff after launches that failed or nodes that did not
// join, the canary launch after a fix, and the record of recent registrations. It also has the backoff of pods for which a
// launched node did not help.
//
// In: the outcome of launches and registrations.
// Out: whether the pool may launch, with the reason.
// Never: a launch.
package poolhealth
