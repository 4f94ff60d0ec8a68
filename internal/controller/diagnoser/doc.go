// Package diagnoser finds out why nodes do not join. It collects evidence, runs the checks, and reports the cause on
// the NodeClaim, its NodePool and its pending pods.
//
// In: late NodeClaims, evidence.
// Out: findings as conditions and events.
// Never: applying a fix.
package diagnoser
