// Package diagnoser finds out why nodes do not join: it collects evidence, runs the checks, and reports the cause on the
// NodeClaim, the NodePool and the pods that wait.
//
// In: late NodeClaims, evidence.
// Out: findings as conditions and events.
// Never: a fix.
package diagnoser
