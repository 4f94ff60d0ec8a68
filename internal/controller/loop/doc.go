// Package loop has the code that all control loops share: interfaces of clients, retries with backoff, batching of
// requests, the user's pause, progress for the probes, and events at a limited rate.
//
// In: objects, clock, calls that fail.
// Out: requests, retry times, events, progress.
// Never: rules about nodes or pools.
package loop
