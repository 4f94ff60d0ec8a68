// Package identity is the state of IAM and STS: roles, instance profiles, policies, identity providers, users and
// sessions.
//
// In: calls of IAM and STS as values, and the time.
// Out: roles, profiles, policies and sessions, and the verdict of a role's policies on a request.
// Never: an instance, a cluster, a clock, a signature of a request, or a wire format.
package identity
