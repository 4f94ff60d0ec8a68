// Package loop has what all control loops share: clients as interfaces, retries with backoff, batching of requests, the pause
// of the user, progress that readiness reports, and events with a limited rate.
//
// In: objects, clock, calls that fail.
// Out: requests, retry times, events, progress.
// Never: a rule about nodes or pools.
package loop
